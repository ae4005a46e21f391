// Package pages opens in a browser the page of package live and the report of floodgate replay.
package pages

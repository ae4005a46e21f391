// Package pagetest opens the pages of package report in a browser. It is a
// module of its own, so that what drives the browser is nobody else's.
package pagetest

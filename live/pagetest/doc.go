// Package pagetest opens the page of package live in a browser. It is a module of its
// own, so that no other module depends on the browser's driver.
package pagetest

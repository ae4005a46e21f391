// Package report writes what a replay has found: as text for a terminal, as
// CSV, as JSON, and as a page of HTML that needs nothing else. What stands in a
// log was written by strangers: nothing of it gets to do anything in a terminal,
// a spreadsheet or a browser.
package report

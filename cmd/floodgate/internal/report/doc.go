// Package report writes the results of a replay: as text for a terminal, as
// CSV, as JSON, and as a self-contained page of HTML. The text of a log was
// written by strangers: none of it can have an effect in a terminal, a
// spreadsheet or a browser.
package report

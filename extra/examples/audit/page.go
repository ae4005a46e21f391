package main

import (
	"bytes"
	_ "embed"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// Wait is RetryAfter in words.
func (e Entry) Wait() string {
	// The database has whole microseconds, which core.Never is not.
	if e.RetryAfter >= core.Never.Truncate(time.Microsecond) {
		return "never"
	}
	return e.RetryAfter.String()
}

// auditPage lists the newest entries. A real application shows it to its
// operators alone.
func auditPage(j *Journal) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		entries, err := j.Newest(r.Context(), 100)
		var totals []Total
		if err == nil {
			totals, err = j.Totals(r.Context())
		}
		if err != nil {
			slog.Warn("the audit page", "error", err)
			http.Error(w, "the audit log cannot be read right now", http.StatusServiceUnavailable)
			return
		}
		var b bytes.Buffer
		data := map[string]any{"Entries": entries, "Totals": totals, "Lost": j.Lost()}
		if err := page.Execute(&b, data); err != nil {
			slog.Warn("the audit page", "error", err)
			http.Error(w, "the audit log cannot be shown", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_, _ = b.WriteTo(w)
	}
}

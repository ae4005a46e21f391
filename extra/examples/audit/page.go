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
	if e.RetryAfter >= core.Never.Truncate(time.Microsecond) { // the database has whole microseconds
		return "never"
	}
	return e.RetryAfter.String()
}

// auditPage lists the newest entries. An application shows it only to its operators.
func auditPage(j *Journal) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		entries, err := j.Newest(r.Context(), 100)
		if err == nil {
			err = page.Execute(&b, map[string]any{"Entries": entries, "Lost": j.Lost()})
		}
		if err != nil {
			slog.Warn("the audit page", "error", err)
			http.Error(w, "the audit log cannot be read now", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_, _ = b.WriteTo(w)
	}
}

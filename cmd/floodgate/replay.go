package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/report"
)

var formats = map[string]func(io.Writer, *replay.Report) error{"text": report.Text, "json": report.JSON, "html": report.HTML}

func replayCommand() *cobra.Command {
	var o replay.Config
	var format string
	var fields map[string]string
	c := &cobra.Command{
		Use:   "replay FILE ACCESS.log...",
		Short: "Report what a policy file would have denied in an access log",
		Long: "replay decides on each request of an access log at the time that the log has, and reports what would have been denied.\n" +
			"A log has the common or combined format, or lines of JSON (nginx, Caddy, Traefik). It may be compressed with gzip. - is the standard input.\n" +
			"Give several logs in the order of their times, the oldest first. Requests of a log wait for nothing and take no time: limits of requests in flight deny none.\n" +
			"Policies that read route see one only in lines of JSON that have the field route (--fields).\n\n" +
			"In the report, an honest client is an address that never sent more than --honest requests in a minute of the clock.",
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) (err error) {
			write := formats[format]
			if write == nil {
				return fmt.Errorf("%w: --format: %q: want text, json or html", errUsage, format)
			}
			for name, path := range fields {
				if !slices.Contains(accesslog.FieldNames, name) || path == "" {
					return fmt.Errorf("%w: --fields: %q: want NAME=FIELD such as time=when, where NAME is one of %s", errUsage, name+"="+path, strings.Join(accesslog.FieldNames, ", "))
				}
			}
			if o.HonestPerMinute < 1 {
				return fmt.Errorf("%w: --honest: %d: want 1 or more", errUsage, o.HonestPerMinute)
			}
			o.Name, o.Fields = args[0], fields
			if o.Text, err = read(o.Name); err != nil {
				return err
			}
			r, err := replay.New(o)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.Close()) }()
			for _, name := range args[1:] {
				if err := replayLog(c, r, name); err != nil {
					return err
				}
			}
			found := r.Report()
			if found.Lines == 0 {
				return fmt.Errorf("%s: no lines (want a log in %s)", strings.Join(found.Logs, ", "), accesslog.Formats)
			}
			return write(c.OutOrStdout(), found)
		},
	}
	f := c.Flags()
	f.StringVar(&format, "format", "text", "text, json or html")
	f.StringToStringVar(&fields, "fields", nil, "the names of fields in JSON lines, such as time=when,addr=client.ip; known fields: "+strings.Join(accesslog.FieldNames, ", "))
	f.Int64Var(&o.HonestPerMinute, "honest", 60, "the most requests that an honest client sends in a minute")
	f.BoolVar(&o.Sweep, "sweep", false, "try other quotas too")
	return c
}

// replayLog replays one log. On a terminal, a line says how much of a file has been read.
func replayLog(c *cobra.Command, r *replay.Replay, name string) error {
	if name == "-" {
		return r.Run(c.Context(), "standard input", c.InOrStdin())
	}
	f, err := os.Open(name) //nolint:gosec // the user has named it
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was read only
	out := c.ErrOrStderr()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || !forPeople(out) {
		return r.Run(c.Context(), name, f)
	}
	defer func() { _, _ = io.WriteString(out, "\r\x1b[K") }()
	return r.Run(c.Context(), name, &progress{file: f, name: report.Escape(name), size: max(1, info.Size()), out: out})
}

// progress is a file that says, four times a second, how much of it has been read.
type progress struct {
	file       io.Reader
	name       string
	size, read int64
	out        io.Writer
	next       time.Time
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.file.Read(b)
	p.read += int64(n)
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(time.Second / 4)
		_, _ = fmt.Fprintf(p.out, "\r%s: %d %%", p.name, 100*p.read/p.size)
	}
	return n, err
}

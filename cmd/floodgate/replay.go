package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/report"
)

// replaying has the values of replay's flags.
type replaying struct {
	against          []string
	format, output   string
	fields           map[string]string
	honest           int64
	top              int
	sweep, quiet     bool
	now              func() time.Time
	in               io.Reader
	out, diagnostics io.Writer
}

var formats = map[string]func(io.Writer, *replay.Report) error{"text": report.Text, "json": report.JSON, "html": report.HTML}

func replayCommand() *cobra.Command {
	o := replaying{now: time.Now}
	c := &cobra.Command{
		Use:   "replay FILE ACCESS.log...",
		Short: "Report what a policy file would have denied in an access log",
		Long: "replay decides on each request of an access log at the time that the log has, and reports what would have been denied.\n" +
			"A log has the common or combined format, or lines of JSON (nginx, Caddy, Traefik). It may be compressed with gzip. - is the standard input.\n" +
			"Give several logs in the order of their times, the oldest first. Requests of a log wait for nothing and take no time: limits of requests in flight deny none.\n\n" +
			"In the report, an honest client is an address that never sent more than --honest requests in a minute of the clock.",
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			o.in, o.out, o.diagnostics = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
			if !c.Flags().Changed("sweep") {
				o.sweep = o.format == "html"
			}
			if err := o.check(); err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			err := o.replay(c.Context(), append([]string{args[0]}, o.against...), args[1:])
			if last := args[len(args)-1]; err != nil && isYAML(last) && !isYAML(args[0]) {
				return fmt.Errorf("the policy file comes first: floodgate replay %s %s: %v", last, args[0], err) //nolint:errorlint // of a policy.Error, only the mistakes would be printed
			}
			return err
		},
	}
	f := c.Flags()
	f.StringArrayVar(&o.against, "against", nil, "another policy file to run side by side; may be repeated")
	f.StringVar(&o.format, "format", "text", "text, json or html")
	f.StringVarP(&o.output, "output", "o", "", "the file to write the report to (default: the standard output)")
	f.StringToStringVar(&o.fields, "fields", nil, "the names of fields in JSON lines, such as time=when,addr=client.ip; known fields: "+strings.Join(accesslog.FieldNames, ", "))
	f.Int64Var(&o.honest, "honest", 60, "the most requests that an honest client sends in a minute")
	f.IntVar(&o.top, "top", 20, "how many keys, routes and clients to list, each")
	f.BoolVar(&o.sweep, "sweep", false, "try other quotas too; the default is true for --format html")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not report progress")
	return c
}

func isYAML(name string) bool { return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) }

func (o *replaying) check() error {
	if formats[o.format] == nil {
		return fmt.Errorf("--format: %q: want text, json or html", o.format)
	}
	for name, path := range o.fields {
		if !slices.Contains(accesslog.FieldNames, name) || path == "" {
			return fmt.Errorf("--fields: %q: want NAME=FIELD such as time=when, where NAME is one of %s", name+"="+path, strings.Join(accesslog.FieldNames, ", "))
		}
	}
	for name, n := range map[string]int64{"honest": o.honest, "top": int64(o.top)} {
		if n < 1 {
			return fmt.Errorf("--%s: %d: want 1 or more", name, n)
		}
	}
	return nil
}

func (o *replaying) replay(ctx context.Context, files, logs []string) (err error) {
	config := replay.Config{Fields: o.fields, HonestPerMinute: o.honest, Top: o.top, Sweep: o.sweep}
	if o.output != "" {
		if err := checkOutput(o.output); err != nil {
			return err
		}
	}
	for _, name := range files {
		text, err := readPolicy(name)
		if err != nil {
			return err
		}
		config.Files = append(config.Files, replay.File{Name: name, Text: text})
	}
	if !o.quiet {
		config.Progress = o.progress()
	}
	r, err := replay.New(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, name := range logs {
		if err := o.one(ctx, r, name); err != nil {
			return err
		}
	}
	found := r.Report()
	if found.Lines == 0 {
		return fmt.Errorf("%s: no lines (want a log in %s)", strings.Join(found.Logs, ", "), accesslog.Formats)
	}
	if o.output == "" {
		return formats[o.format](o.out, found)
	}
	return writeOutput(o.output, func(w io.Writer) error { return formats[o.format](w, found) })
}

// one replays one log.
func (o *replaying) one(ctx context.Context, r *replay.Replay, name string) error {
	if name == "-" {
		return r.Run(ctx, "standard input", o.in)
	}
	f, err := os.Open(name) //nolint:gosec // the user has named it
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was read only
	return r.Run(ctx, name, f)
}

// reportEvery is the shortest time between two reports of the progress.
const reportEvery = 2 * time.Second

// progress returns a function that reports from time to time how many lines have been
// read.
func (o *replaying) progress() func(lines int64) {
	began := o.now()
	reported := began
	return func(lines int64) {
		at := o.now()
		if at.Sub(reported) >= reportEvery {
			reported = at
			_, _ = fmt.Fprintf(o.diagnostics, "%d lines, %.0f lines a second\n", lines, float64(lines)/at.Sub(began).Seconds())
		}
	}
}

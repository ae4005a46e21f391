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
	fieldFlags       []string
	fields           accesslog.Fields
	honest           int64
	top, maxKeys     int
	sweep, quiet     bool
	outliers         string
	tolerance        time.Duration
	sweepIsForHTML   bool
	now              func() time.Time
	in               io.Reader
	out, diagnostics io.Writer
}

var formats = map[string]func(io.Writer, *replay.Report) error{"text": report.Text, "csv": report.CSV, "json": report.JSON, "html": report.HTML}

func replayCommand() *cobra.Command {
	var o replaying
	c := &cobra.Command{
		Use:   "replay FILE ACCESS.log...",
		Short: "Report what a policy file would have denied in an access log",
		Long: "replay decides on each request of an access log at the time that the log has, and reports what would have been denied.\n" +
			"A log has the common or combined format, or lines of JSON (nginx, Caddy, Traefik). It may be compressed with gzip, zstd or bzip2. - is the standard input.\n" +
			"Give several logs in the order of their times, the oldest first.\n\n" +
			"In the report, an honest client is an address that never sent more than --honest requests in a minute of the clock.",
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			o.now = time.Now
			o.in, o.out, o.diagnostics = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
			o.sweepIsForHTML = !c.Flags().Changed("sweep")
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
	f.StringVar(&o.format, "format", "text", "text, csv, json or html")
	f.StringVarP(&o.output, "output", "o", "", "the file to write the report to (default: the standard output)")
	f.StringArrayVar(&o.fieldFlags, "fields", nil, "the names of fields in JSON lines, such as time=when,addr=client.ip; known fields: "+strings.Join(accesslog.FieldNames, ", "))
	f.Int64Var(&o.honest, "honest", 60, "the most requests that an honest client sends in a minute")
	f.IntVar(&o.top, "top", 20, "how many keys, routes and clients to list, each")
	f.IntVar(&o.maxKeys, "max-keys", 500_000, "how many keys are counted one by one; bounds the memory")
	f.BoolVar(&o.sweep, "sweep", false, "try other quotas too; the default is true for --format html")
	f.StringVar(&o.outliers, "outliers", "leave-out", "what to do with a line whose time is far from the times of the lines around it: leave-out or stop")
	f.DurationVar(&o.tolerance, "tolerance", replay.DefaultTolerance, "how far the time of a line may be ahead of the lines around it; it may be behind by this or by a day, whichever is longer")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not report progress")
	return c
}

func isYAML(name string) bool { return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) }

func (o *replaying) check() error {
	if formats[o.format] == nil {
		return fmt.Errorf("--format: %q: want text, csv, json or html", o.format)
	}
	if o.outliers != "leave-out" && o.outliers != "stop" {
		return fmt.Errorf("--outliers: %q: want leave-out or stop", o.outliers)
	}
	if o.tolerance <= 0 {
		return fmt.Errorf("--tolerance: %v: want a duration such as 5m", o.tolerance)
	}
	var err error
	if o.fields, err = parseFields(o.fieldFlags); err != nil {
		return err
	}
	for name, n := range map[string]int64{"honest": o.honest, "top": int64(o.top), "max-keys": int64(o.maxKeys)} {
		if n < 1 {
			return fmt.Errorf("--%s: %d: want 1 or more", name, n)
		}
	}
	if o.sweepIsForHTML {
		o.sweep = o.format == "html"
	}
	return nil
}

func (o *replaying) replay(ctx context.Context, files, logs []string) (err error) {
	config := replay.Config{Fields: o.fields, HonestPerMinute: o.honest, Top: o.top, MaxKeys: o.maxKeys, Sweep: o.sweep, Tolerance: o.tolerance, StopAtOutlier: o.outliers == "stop"}
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
	progress := newProgress(o.diagnostics, o.now)
	if !o.quiet {
		config.Progress = progress.lines
	}
	r, err := replay.New(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, name := range logs {
		if err := o.one(ctx, r, name, progress); err != nil {
			return err
		}
	}
	found := r.Report()
	if found.Lines == 0 {
		return fmt.Errorf("%s: no lines (want a log in %s)", strings.Join(found.Logs, ", "), accesslog.Formats)
	}
	return o.write(found)
}

// one replays one log.
func (o *replaying) one(ctx context.Context, r *replay.Replay, name string, p *progress) error {
	p.size = 0
	log := replay.Log{Name: "standard input", Reader: o.in}
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // the user has named it
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was read only
		log = replay.Log{Name: name, Reader: f}
		if info, err := f.Stat(); err == nil {
			p.size = info.Size()
		}
	}
	log.Reader = p.reading(log.Reader)
	return r.Run(ctx, log)
}

// write writes the report.
func (o *replaying) write(r *replay.Report) error {
	if o.output == "" {
		return formats[o.format](o.out, r)
	}
	return writeOutput(o.output, func(w io.Writer) error { return formats[o.format](w, r) })
}

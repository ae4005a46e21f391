package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/internal/accesslog"
	"github.com/floodgate-go/floodgate/internal/replay"
	"github.com/floodgate-go/floodgate/internal/report"
)

// replaying is what the flags of replay say.
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
	in               io.Reader
	out, diagnostics io.Writer
}

var formats = map[string]func(io.Writer, *replay.Report) error{"text": report.Text, "csv": report.CSV, "json": report.JSON, "html": report.HTML}

func replayCommand() *cobra.Command {
	var o replaying
	c := &cobra.Command{
		Use:   "replay FILE ACCESS.log...",
		Short: "Tell what a policy file would have refused of what is in an access log",
		Long: "replay decides on every request of an access log, in the log's own time, and reports what would have been refused.\n" +
			"Logs are in the common or combined format or lines of JSON (nginx, Caddy, Traefik), compressed by gzip, zstd or bzip2 or not; - is the standard input.\n" +
			"Give several in the order of their times, the oldest first.\n\n" +
			"An honest client, as the report counts them, is an address that never sent more than --honest requests in a minute of the clock.",
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			o.in, o.out, o.diagnostics = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
			o.sweepIsForHTML = !c.Flags().Changed("sweep")
			if err := o.check(); err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return o.replay(c, append([]string{args[0]}, o.against...), args[1:])
		},
	}
	f := c.Flags()
	f.StringArrayVar(&o.against, "against", nil, "another policy file, to be run side by side; may be given several times")
	f.StringVar(&o.format, "format", "text", "text, csv, json or html")
	f.StringVarP(&o.output, "output", "o", "", "a file to write to; without it, the standard output")
	f.StringArrayVar(&o.fieldFlags, "fields", nil, "fields of JSON lines, such as time=when,addr=client.ip; known are "+strings.Join(accesslog.FieldNames, ", "))
	f.Int64Var(&o.honest, "honest", 60, "the most requests that an honest client sends in a minute")
	f.IntVar(&o.top, "top", 20, "how many keys, routes and clients to list")
	f.IntVar(&o.maxKeys, "max-keys", 500_000, "how many keys are counted one by one: bounds the memory")
	f.BoolVar(&o.sweep, "sweep", false, "try other quotas as well; a page of HTML always has it, unless --sweep=false")
	f.StringVar(&o.outliers, "outliers", "leave-out", "leave-out or stop: what becomes of a line whose time is far from those of the lines around it")
	f.DurationVar(&o.tolerance, "tolerance", replay.DefaultTolerance, "how far a line's time may be ahead of those around it; a day, if that is more, for one that is behind")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "tell no progress")
	return c
}

func (o *replaying) check() error {
	if formats[o.format] == nil {
		return fmt.Errorf("--format: %q: want text, csv, json or html", o.format)
	}
	if o.outliers != "leave-out" && o.outliers != "stop" {
		return fmt.Errorf("--outliers: %q: want leave-out or stop", o.outliers)
	}
	if o.tolerance <= 0 {
		return fmt.Errorf("--tolerance: %v: want a length of time such as 5m", o.tolerance)
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

func (o *replaying) replay(c *cobra.Command, files, logs []string) (err error) {
	config := replay.Config{Fields: o.fields, HonestPerMinute: o.honest, Top: o.top, MaxKeys: o.maxKeys, Sweep: o.sweep, Tolerance: o.tolerance, StopAtOutlier: o.outliers == "stop"}
	if o.output != "" {
		if err := checkOutput(o.output); err != nil {
			return err
		}
	}
	for _, name := range files {
		text, err := os.ReadFile(name) //nolint:gosec // the user has named it
		if err != nil {
			return err
		}
		config.Files = append(config.Files, replay.File{Name: name, Text: text})
	}
	progress := &progress{w: o.diagnostics, began: time.Now(), told: time.Now()}
	if !o.quiet {
		config.Progress = progress.lines
	}
	r, err := replay.New(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, name := range logs {
		if err := o.one(c, r, name, progress); err != nil {
			return err
		}
	}
	return o.write(r.Report())
}

// one replays one log.
func (o *replaying) one(c *cobra.Command, r *replay.Replay, name string, p *progress) error {
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
	return r.Run(c.Context(), log)
}

// write writes the report.
func (o *replaying) write(r *replay.Report) error {
	if o.output == "" {
		return formats[o.format](o.out, r)
	}
	return writeOutput(o.output, func(w io.Writer) error { return formats[o.format](w, r) })
}

// progress tells from time to time how far a long log has been read.
type progress struct {
	w           io.Writer
	began, told time.Time
	size        int64 // of the log that is being read, in bytes as they are stored; 0: not known
	read        atomic.Int64
}

const tellEvery = 2 * time.Second

func (p *progress) lines(n int64) {
	if time.Since(p.told) < tellEvery {
		return
	}
	p.told = time.Now()
	share := ""
	if p.size > 0 {
		share = fmt.Sprintf(", %d %% of the log", 100*p.read.Load()/p.size)
	}
	perSecond := float64(n) / cmp.Or(time.Since(p.began).Seconds(), 1)
	_, _ = fmt.Fprintf(p.w, "%d lines%s, %.0f a second\n", n, share, perSecond)
}

type counted struct {
	io.Reader
	progress *progress
}

func (p *progress) reading(r io.Reader) io.Reader {
	p.read.Store(0)
	return counted{r, p}
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.progress.read.Add(int64(n))
	return n, err
}

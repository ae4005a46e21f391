// Package replay runs policy files over access logs in the logs' own time, and
// reports which requests would have been denied. Its memory is bounded, however
// long the logs are.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
)

// File is a policy file.
type File struct {
	Name string
	Text []byte
}

// Config configures a replay.
type Config struct {
	// Files are run side by side.
	Files []File
	// Fields are the fields of JSON lines; nil: the usual ones.
	Fields accesslog.Fields
	// HonestPerMinute is the most requests of an honest client a minute; 1 or more.
	HonestPerMinute int64
	// Top is how many keys, routes and clients are reported; 1 or more.
	Top int
	// MaxKeys is how many keys and how many clients are counted at a time;
	// 0: 500,000.
	MaxKeys int
	// Sweep means that other quotas are tried as well, which takes ten times as long.
	Sweep bool
	// Progress is called now and then with the number of lines read; may be nil.
	Progress func(lines int64)
}

// Replay is a replay under way. Its methods may not be called concurrently.
type Replay struct {
	config  Config
	now     time.Time // the newest so far
	report  Report
	window  window
	request request
	runs    []*run
}

// New makes a replay. The errors are those of the files.
func New(c Config) (*Replay, error) {
	if c.MaxKeys == 0 {
		c.MaxKeys = 500_000
	}
	r := &Replay{config: c, request: request{missing: map[string]bool{}}}
	r.report.WholeSeconds = true
	var errs []error
	for _, f := range c.Files {
		one, err := newRun(f, r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r.runs = append(r.runs, one)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close closes everything that New opened.
func (r *Replay) Close() error {
	var errs []error
	for _, one := range r.runs {
		errs = append(errs, one.close())
	}
	return errors.Join(errs...)
}

// maxSamples is how many lines that could not be read are shown.
const maxSamples = 20

// parsed is a line after parsing.
type parsed struct {
	entry  accesslog.Entry
	err    error
	number int
	text   string
}

const batchSize = 512

// Run replays a log. Logs must be run in the order of their times, the oldest
// first. A line that cannot be read is counted, and so is an outlier. Run
// returns the error of reading the log, or ctx's. A log with lines of which
// none can be read is an error. A log without lines is no error, because it may
// have just been rotated.
func (r *Replay) Run(ctx context.Context, name string, log io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.window.held = nil // of a log that has failed
	batches := make(chan []parsed, 4)
	failed := make(chan error, 1)
	go func() { // one core parses while the other decides
		defer close(batches)
		failed <- r.parse(ctx, log, batches)
	}()
	r.report.Logs = append(r.report.Logs, name)
	lines, malformed := r.report.Lines, r.report.Malformed
	var first *parsed // the first line of the log
	for batch := range batches {
		for i := range batch {
			if first == nil {
				first = &batch[i]
			}
			r.line(name, &batch[i])
		}
		if r.config.Progress != nil {
			r.config.Progress(r.report.Lines)
		}
	}
	err := <-failed
	for err == nil && len(r.window.held) > 0 {
		r.oldest(name)
	}
	switch n := r.report.Lines - lines; {
	case errors.Is(err, accesslog.ErrTruncated):
		err = fmt.Errorf("%w (lines read: %d)", err, n)
	case err == nil && n > 0 && r.report.Malformed-malformed == n:
		err = unreadable(n, first)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// unreadable returns the error for a log of n lines of which none can be read, not even
// the first.
func unreadable(n int64, first *parsed) error {
	text, hint := []rune(strings.ToValidUTF8(first.text, "\ufffd")), "want "+accesslog.Formats
	if len(text) > maxShown {
		text = append(text[:maxShown:maxShown], []rune("...")...)
	}
	if strings.HasPrefix(strings.TrimSpace(first.text), "{") {
		hint += "; --fields names the fields of other JSON"
	}
	return fmt.Errorf("none of its lines (%d) is a line of an access log: line %d, %q, %w (%s)", n, first.number, string(text), first.err, hint)
}

// maxShown is the number of characters of a line that an error shows.
const maxShown = 100

func (r *Replay) parse(ctx context.Context, log io.Reader, batches chan<- []parsed) error {
	batch := make([]parsed, 0, batchSize)
	send := func() error {
		select {
		case batches <- batch:
			batch = make([]parsed, 0, batchSize)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := accesslog.Lines(log, func(number int, line []byte) error {
		p := parsed{number: number, text: string(line)}
		p.entry, p.err = accesslog.Parse(p.text, r.config.Fields)
		if p.err == nil {
			p.text = ""
		}
		if batch = append(batch, p); len(batch) < batchSize {
			return nil
		}
		return send()
	})
	if len(batch) > 0 && ctx.Err() == nil {
		err = errors.Join(err, send()) // what came before an error counts
	}
	return err
}

// line takes a line. It is decided once the lines after it are known.
func (r *Replay) line(log string, p *parsed) {
	r.report.Lines++
	if p.err != nil {
		r.report.Malformed++
		r.sample(log, p, p.err.Error())
		return
	}
	if r.window.held = append(r.window.held, *p); len(r.window.held) > neighbours {
		r.oldest(log)
	}
}

func (r *Replay) sample(log string, p *parsed, problem string) {
	if len(r.report.Samples) < maxSamples {
		r.report.Samples = append(r.report.Samples, Sample{log, p.number, p.text[:min(len(p.text), 200)], problem})
	}
}

// oldest decides the oldest line that is held, or leaves it out.
func (r *Replay) oldest(log string) {
	w := &r.window
	p := &w.held[0]
	if w.wrong() {
		r.report.Outliers++
		p.text = p.entry.Method + " " + p.entry.Target
		r.sample(log, p, "its time, "+p.entry.Time.Format(time.RFC3339)+", is far from the times of the lines around it")
	} else {
		r.decide(&p.entry)
		w.taken(p.entry.Time)
	}
	w.held = w.held[1:]
}

// decide has the policies decide on a request.
func (r *Replay) decide(e *accesslog.Entry) {
	rep := &r.report
	rep.Requests++
	at := e.Time
	rep.WholeSeconds = rep.WholeSeconds && at.Nanosecond() == 0
	switch {
	case rep.Requests == 1:
		rep.From, r.now = at, at
	case at.Before(r.now):
		rep.OutOfOrder++
		rep.LongestBack = max(rep.LongestBack, r.now.Sub(at))
		if at.Before(rep.From) {
			rep.From = at
		}
	default:
		r.now = at
	}
	r.request.set(*e)
	for _, one := range r.runs {
		one.decide(&r.request, r.now)
	}
}

// Report returns the results so far.
func (r *Replay) Report() *Report {
	rep := r.report
	rep.To = r.now
	rep.WholeSeconds = rep.WholeSeconds && rep.Requests > 0
	rep.Missing = slices.Sorted(maps.Keys(r.request.missing))
	for _, one := range r.runs {
		rep.Files = append(rep.Files, one.report())
	}
	return &rep
}

// A line whose time is wrong would end all windows, or hold them open: the
// requests behind it would be decided at one moment. So each time is compared
// with those of the lines around it, of which the medians are taken.
const (
	neighbours = 32                   // lines on each side
	tolerance  = 5 * time.Minute      // how far ahead a time may be: longer than requests usually take
	farBehind  = 24 * time.Hour       // long requests are logged at their end, with the time of their beginning
	farApart   = 366 * 24 * time.Hour // beside which a gap in a log is no gap any more: no window is longer
)

// window holds lines back until those that follow them are known.
type window struct {
	before []time.Time // of the last lines that were taken, at most neighbours
	held   []parsed
	newest time.Time
}

// wrong reports whether the time of the oldest held line is far from the times
// of the lines around it.
func (w *window) wrong() bool {
	at := w.held[0].entry.Time
	if len(w.before) > 0 && !at.After(w.newest.Add(tolerance)) && at.After(w.newest.Add(-farBehind)) {
		return false // as nearly all are
	}
	var after []time.Time
	for i := 1; i < len(w.held); i++ {
		after = append(after, w.held[i].entry.Time)
	}
	earlier, known := median(w.before)
	later, follow := median(after)
	switch {
	case known && follow:
		return at.Sub(earlier) > tolerance && at.Sub(later) > tolerance || earlier.Sub(at) > farBehind && later.Sub(at) > farBehind
	case follow: // the first lines of the first log
		return at.Sub(later) > tolerance || later.Sub(at) > farApart
	case known: // the last line of the last log
		return at.Sub(earlier) > farApart || earlier.Sub(at) > farBehind
	}
	return false
}

// taken notes that the oldest line that is held has been decided.
func (w *window) taken(at time.Time) {
	if len(w.before) == neighbours {
		w.before = w.before[1:]
	}
	w.before = append(w.before, at)
	if at.After(w.newest) {
		w.newest = at
	}
}

func median(times []time.Time) (time.Time, bool) {
	if len(times) == 0 {
		return time.Time{}, false
	}
	sorted := slices.SortedFunc(slices.Values(times), time.Time.Compare)
	return sorted[(len(sorted)-1)/2], true
}

package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// progress reports from time to time how much of a long log has been read.
type progress struct {
	w               io.Writer
	now             func() time.Time
	began, reported time.Time
	size            int64 // of the log that is being read, in bytes as they are stored; 0: unknown
	read            atomic.Int64
}

// reportEvery is the shortest time between two reports.
const reportEvery = 2 * time.Second

func newProgress(w io.Writer, now func() time.Time) *progress {
	at := now()
	return &progress{w: w, now: now, began: at, reported: at}
}

// lines reports that n lines have been read, of all logs.
func (p *progress) lines(n int64) {
	at := p.now()
	if at.Sub(p.reported) < reportEvery {
		return
	}
	p.reported = at
	share := ""
	if p.size > 0 {
		share = fmt.Sprintf(", %d %% of the log", 100*p.read.Load()/p.size)
	}
	_, _ = fmt.Fprintf(p.w, "%d lines%s, %.0f lines a second\n", n, share, float64(n)/at.Sub(p.began).Seconds())
}

// counted is a reader that counts its bytes for a progress.
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

package processtest

import (
	"bytes"
	"maps"
	"sync"
)

// lines counts the lines that are written to it. A line that is cut off is not counted.
type lines struct {
	mu      sync.Mutex
	more    *sync.Cond // there are more lines, or no more will come
	counts  map[string]int
	partial []byte // the beginning of a line
	ended   bool
}

func newLines() *lines {
	l := &lines{counts: map[string]int{}}
	l.more = sync.NewCond(&l.mu)
	return l
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, p...)
	for {
		line, rest, whole := bytes.Cut(l.partial, []byte{'\n'})
		if !whole {
			break
		}
		l.counts[string(bytes.TrimSuffix(line, []byte{'\r'}))]++
		l.partial = rest
	}
	l.more.Broadcast()
	return len(p), nil
}

// end says that no more will be written.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.more.Broadcast()
}

func (l *lines) count(line string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[line]
}

// wait waits until a line has been written so often. If it returns false, the line will not be: the
// first result has all that was written.
func (l *lines) wait(line string, times int) (map[string]int, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.counts[line] < times {
		if l.ended {
			return maps.Clone(l.counts), false
		}
		l.more.Wait()
	}
	return nil, true
}

// lastBytes is how much of a process's last words a failed test shows.
const lastBytes = 2000

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	w.text = w.text[max(0, len(w.text)-lastBytes):]
	return len(p), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}

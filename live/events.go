package live

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	mostViewers = 32
	// writeTime is how long a browser may take to receive the counts of a second.
	writeTime = 10 * time.Second
)

// frame is one second of the page, with an event for its viewers. The first viewer makes the
// event for all of them. Without a viewer, there is no event.
type frame struct {
	second int64
	passed chan struct{} // closed at the end of the second
	event  func() []byte
}

func (p *Page) newFrame(second int64) *frame {
	return &frame{second, make(chan struct{}), sync.OnceValue(func() []byte { return p.event(second) })}
}

// event returns a server-sent event (HTML standard, section 9.2).
func (p *Page) event(second int64) []byte {
	text, err := json.Marshal(p.state(second))
	if err != nil { // only if a field of state cannot be JSON at all
		return nil
	}
	return append(append([]byte("data: "), text...), "\n\n"...)
}

// events sends an event each second, until the browser or the page goes away.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	if from := r.Header.Get("Sec-Fetch-Site"); from == "cross-site" || from == "same-site" {
		answer(w, http.StatusForbidden, result{Error: "the request comes from another site"})
		return
	}
	if p.closed() {
		answer(w, http.StatusServiceUnavailable, result{Error: "this process has closed the page"})
		return
	}
	select {
	case p.viewers <- struct{}{}:
		defer func() { <-p.viewers }()
	default:
		answer(w, http.StatusServiceUnavailable, result{Error: "too many pages of this process are open"})
		return
	}
	h, control := w.Header(), http.NewResponseController(w)
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx passes each event on at once
	_ = control.SetWriteDeadline(time.Now().Add(writeTime))
	if err := control.Flush(); errors.Is(err, http.ErrNotSupported) { // then nothing has been sent
		answer(w, http.StatusNotImplemented, result{Error: "the page needs a server that sends each event at once: " +
			"mount it outside of http.TimeoutHandler and of other middleware that holds responses back"})
		return
	}
	for {
		f := p.now()
		_ = control.SetWriteDeadline(time.Now().Add(writeTime)) // not every server has deadlines
		if _, err := w.Write(f.event()); err != nil {
			return
		}
		if err := control.Flush(); err != nil {
			return
		}
		select {
		case <-f.passed:
		case <-r.Context().Done():
			return
		case <-p.stop:
			return
		}
	}
}

// now returns the frame of the present second.
func (p *Page) now() *frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frame
}

func (p *Page) closed() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}

package live

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"time"
	"unicode/utf8"

	"github.com/floodgate-go/floodgate/core"
)

const (
	longestOrder = 16 << 10 // bytes
	longestBan   = core.MaxWindow
)

// order is what the page asks for.
type order struct {
	Do      string `json:"do"` // look, unblock, ban or forget
	Limiter string `json:"limiter"`
	Rule    string `json:"rule"`
	// Key is the key, or ID stands for it: see seenKey.
	Key string `json:"key"`
	ID  string `json:"id"`
	// Seconds is how long a ban lasts.
	Seconds int64 `json:"seconds"`
}

// result is the answer to an order.
type result struct {
	Error string `json:"error,omitempty"`
	// Note is for the operator, such as lookedAlone.
	Note   string      `json:"note,omitempty"`
	Limits []limitLeft `json:"limits,omitempty"`
}

// Notes of an order that this process has done without the store.
const (
	lookedAlone  = "The store does not answer: these are the counters of this process."
	changedAlone = "The store does not answer: only this process has done it. Do it again when the store answers."
)

// alone returns the note if err says that only this process has done an order, or else err.
func alone(err error) (note string, _ error) {
	if errors.Is(err, core.ErrDegraded) {
		return changedAlone, nil
	}
	return "", err
}

// limitLeft is what is left of a limit for a key.
type limitLeft struct {
	Limit     string `json:"limit"`
	Capacity  int64  `json:"capacity"`
	Remaining int64  `json:"remaining"`
	Exceeded  bool   `json:"exceeded"`
	RetryMS   int64  `json:"retryMs"` // -1: never
}

// denial is why an order is not carried out: a status and a text for the operator.
type denial struct {
	status int
	text   string
}

func (r *denial) Error() string { return r.text }

func deny(status int, format string, args ...any) error {
	return &denial{status, fmt.Sprintf(format, args...)}
}

// act carries out an order.
func (p *Page) act(w http.ResponseWriter, r *http.Request) {
	res, err := p.obey(r)
	if err == nil {
		answer(w, http.StatusOK, res)
		return
	}
	var why *denial
	if !errors.As(err, &why) {
		p.config.Log.ErrorContext(r.Context(), "live: the store failed", "error", err)
		why = &denial{http.StatusServiceUnavailable, "the store failed: the log has the error"}
		if errors.Is(err, core.ErrUnsupported) {
			why = &denial{http.StatusNotImplemented, "the store of this limiter cannot do that"}
		}
	}
	answer(w, why.status, result{Error: why.text})
}

func (p *Page) obey(r *http.Request) (result, error) {
	if err := p.csrf.Check(r); err != nil {
		p.config.Log.WarnContext(r.Context(), "live: a request from another site was denied", "from", r.RemoteAddr, "origin", r.Header.Get("Origin"))
		return result{}, deny(http.StatusForbidden, "the request comes from another site")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return result{}, deny(http.StatusUnsupportedMediaType, "send application/json")
	}
	o, err := read(r.Body)
	if err != nil {
		return result{}, err
	}
	if o.Do == "forget" {
		return p.forget(r, o)
	}
	return p.onKey(r, o)
}

// read reads an order. Decode would replace what is not UTF-8: then another key would be
// banned than the one that was sent.
func read(body io.Reader) (o order, err error) {
	text, err := io.ReadAll(io.LimitReader(body, longestOrder+1))
	switch {
	case err != nil:
		return o, deny(http.StatusBadRequest, "the order could not be read")
	case len(text) > longestOrder:
		return o, deny(http.StatusRequestEntityTooLarge, "the order is longer than %d bytes", longestOrder)
	case !utf8.Valid(text):
		return o, deny(http.StatusBadRequest, "the order is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, deny(http.StatusBadRequest, "the order cannot be read: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return o, deny(http.StatusBadRequest, "something follows the order")
	}
	return o, nil
}

// onKey looks at a key of a limiter, unblocks it or bans it.
func (p *Page) onKey(r *http.Request, o order) (result, error) {
	p.mu.Lock()
	l := p.limiters[o.Limiter]
	p.mu.Unlock()
	if l == nil || l.manages.Load() == nil {
		return result{}, deny(http.StatusNotFound, "the page does not manage a limiter %q", o.Limiter)
	}
	hit := core.Hit{Rule: o.Rule, Key: o.Key}
	if o.ID != "" {
		k, ok := p.keyOf(l, o.ID)
		if !ok {
			return result{}, deny(http.StatusNotFound, "the page no longer keeps this key: type it")
		}
		hit = core.Hit{Rule: k.Rule, Key: k.Key, Extra: k.Extra}
	}
	m, a := l.manages.Load(), Action{Name: o.Do, Limiter: o.Limiter, Rule: hit.Rule, Key: hit.Key}
	// The order is carried out even if the browser goes away.
	ctx := context.WithoutCancel(r.Context())
	var err error
	switch o.Do {
	case "look":
	case "unblock":
		err = p.change(r, a, func() error { return m.Reset(ctx, hit) })
	case "ban":
		if o.Seconds < 1 || o.Seconds > int64(longestBan/time.Second) {
			return result{}, deny(http.StatusBadRequest, "a ban lasts 1 to %d seconds, not %d", longestBan/time.Second, o.Seconds)
		}
		a.For = time.Duration(o.Seconds) * time.Second
		err = p.change(r, a, func() error { return m.Block(ctx, a.For, hit) })
	default:
		return result{}, deny(http.StatusBadRequest, "the order %q is unknown", o.Do)
	}
	note, err := alone(err)
	if err != nil {
		return result{}, unknownRule(err, hit.Rule)
	}
	d, err := m.Peek(ctx, 1, hit)
	if err != nil {
		return result{}, unknownRule(err, hit.Rule)
	}
	if d.Degraded && note == "" {
		note = lookedAlone
	}
	return result{Note: note, Limits: left(&d)}, nil
}

func unknownRule(err error, rule string) error {
	if errors.Is(err, core.ErrUnknownRule) {
		return deny(http.StatusNotFound, "the limiter has no rule %q", rule)
	}
	return err
}

// forget forgets the failures of a username at a login. If the key is an IP address, forget
// forgets those of the address too.
func (p *Page) forget(r *http.Request, o order) (result, error) {
	p.mu.Lock()
	login := p.logins[o.Limiter]
	p.mu.Unlock()
	if login == nil {
		return result{}, deny(http.StatusNotFound, "the page does not manage a login %q", o.Limiter)
	}
	ctx := context.WithoutCancel(r.Context())
	done := "Forgotten. An address that has tried too often is still denied: type the address to let it in."
	op := func() error { return login.Unblock(ctx, o.Key) }
	if _, err := netip.ParseAddr(o.Key); err == nil {
		done = "The address may try again. The failures of a username still count: type the username to forget them."
		op = func() error { return errors.Join(login.Unblock(ctx, o.Key), login.UnblockAddress(ctx, o.Key)) }
	}
	note, err := alone(p.change(r, Action{Name: o.Do, Limiter: o.Limiter, Key: o.Key}, op))
	return result{Note: cmp.Or(note, done)}, err
}

// change does op if the application allows it, and logs it.
func (p *Page) change(r *http.Request, a Action, op func() error) error {
	if p.config.Authorize == nil {
		return deny(http.StatusForbidden, "nothing can be changed here: the application has set no Authorize")
	}
	who, err := p.config.Authorize(r, a)
	attrs := []any{"action", a.Name, "limiter", a.Limiter, "rule", a.Rule, "key", a.Key, "who", who, "from", r.RemoteAddr}
	if a.For > 0 {
		attrs = append(attrs, "for", a.For)
	}
	if err != nil {
		p.config.Log.WarnContext(r.Context(), "live: an action was denied", append(attrs, "error", err)...)
		return deny(http.StatusForbidden, "you may not do that")
	}
	err = op()
	if errors.Is(err, core.ErrDegraded) {
		p.config.Log.WarnContext(r.Context(), "live: an action was done in this process only", append(attrs, "error", err)...)
		return err
	}
	if err != nil {
		p.config.Log.ErrorContext(r.Context(), "live: an action failed", append(attrs, "error", err)...)
		return err
	}
	p.config.Log.InfoContext(r.Context(), "live: an action was done", attrs...)
	return nil
}

// left returns what is left of each limit of a decision.
func left(d *core.Decision) []limitLeft {
	var all []limitLeft
	for s := range d.Limits() {
		l := limitLeft{Limit: s.Limit.String(), Capacity: s.Limit.Capacity(), Remaining: s.Remaining, Exceeded: !s.Allowed}
		if l.RetryMS = -1; s.RetryAfter != core.Never {
			l.RetryMS = s.RetryAfter.Milliseconds()
		}
		all = append(all, l)
	}
	return all
}

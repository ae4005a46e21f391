package policy

import (
	"bytes"
	"strconv"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/file"
)

// hooks are the hooks of a file's limiter.
type hooks struct {
	core.DefaultHooks
	*enforcedFile
}

// ShouldLimit implements [core.Hooks]: each policy decides what it limits.
func (h *hooks) ShouldLimit(core.Request) bool { return true }

const statusForbidden = 403

// OnDisallowed implements [core.Hooks].
func (h *hooks) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	denial := core.DefaultHooks{}.OnDisallowed(r, d)
	if p := h.byRule[d.Rule()]; p != nil && d.Reason == core.ReasonOverLimit {
		if p.isDenyRule(d.Rule()) {
			denial.Status, denial.Body = statusForbidden, []byte(`{"type":"about:blank","title":"Forbidden","status":403}`)
		} else {
			denial = applyDenied(&p.Denied, denial)
		}
	}
	if h.options.denied != nil {
		denial = h.options.denied(r, d, denial)
	}
	return denial
}

// applyDenied changes the default denial as the file's on-denied says.
func applyDenied(s *file.Denied, d core.Denial) core.Denial {
	switch {
	case len(s.Body) > 0:
		d.Body = []byte(s.Body)
		d.Header = []core.Header{{Name: "Content-Type", Value: s.ContentType}}
	case s.Status != 0:
		// The member is the response's status: RFC 9457, section 3.1.2.
		const member = `"status":`
		d.Body = bytes.Replace(d.Body, []byte(member+strconv.Itoa(d.Status)), []byte(member+strconv.Itoa(s.Status)), 1)
	}
	if s.Status != 0 {
		d.Status = s.Status
	}
	d.Header = append(d.Header, s.Header...)
	return d
}

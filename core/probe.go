package core

import (
	"errors"

	"github.com/floodgate-go/floodgate/internal/requestlog"
)

// bodyProbe is the request that hooks and key functions get. Until it is open, its
// body cannot be read: wanted is set if one of them tries.
type bodyProbe struct {
	Request
	snap   *snapshot
	rule   int // whose key function is asked; aHook: a hook
	open   bool
	wanted bool
}

var errBodyLater = errors.New("floodgate: the body is read later")

func (p *bodyProbe) Body(most int) ([]byte, error) {
	if p.open {
		return p.Request.Body(most)
	}
	p.wanted = true
	return nil, errBodyLater
}

func (p *bodyProbe) Value(key any) any {
	if _, is := key.(requestlog.Key); is {
		return p.logger()
	}
	return p.Request.Value(key)
}

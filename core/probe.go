package core

import "errors"

// bodyProbe is a request as hooks and key functions get it. Until it is open
// its body is not to be read: it notes that somebody wanted to.
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
	if key == (logKey{}) {
		return p
	}
	return p.Request.Value(key)
}

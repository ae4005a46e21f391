package fasthttprequest

import (
	"testing"

	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/core"
)

// A visit is reused only after its request has ended.
func TestAVisitIsReusedByOneRequestOnly(t *testing.T) {
	a, b := mounting.NewPlace("test", new(core.Limiter)), mounting.NewPlace("test", new(core.Limiter))
	first := newVisit(nil, nil, nil, &a, nil)
	first.local = true
	second := newVisit(nil, nil, nil, &b, first)
	second.local = true
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if first.local || second.local {
		t.Error("Close has not freed all visits of the request")
	}
	// Of the next visits, two at most are these; none may be the same.
	_ = second.Close()
	seen := map[*visit]bool{}
	for range 8 {
		v := newVisit(nil, nil, nil, &a, nil)
		if seen[v] {
			t.Fatal("two requests have the same visit")
		}
		if seen[v] = true; v.Origin != nil || v.Before != nil || v.before != nil {
			t.Errorf("a visit remembers the request before: %+v", v)
		}
	}
}

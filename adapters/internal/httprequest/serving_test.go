package httprequest

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/core"
)

// checker has a method so that each one is another value.
type checker struct {
	core.Checker
	_ int
}

func place() *mounting.Place {
	p := mounting.NewPlace("test", new(checker))
	return &p
}

func sent() *http.Request { return &http.Request{Header: http.Header{}} }

func named(limiter string) *core.Decision { return &core.Decision{Limiter: limiter, Allowed: true} }

// limiters returns the limiters of the decisions that a context reads.
func limiters(s *Serving, r *http.Request, context any) string {
	text := ""
	for _, d := range s.All(r, context) {
		text += d.Limiter + " "
	}
	if d, found := s.Last(r, context); found {
		text += "last " + d.Limiter
	}
	return text
}

// left fails if the Serving still has something of a request.
func left(t *testing.T, s *Serving) {
	t.Helper()
	for i := range s.contexts.places {
		if p := s.contexts.places[i].Load(); p != nil {
			t.Fatalf("a context has kept %+v", p)
		}
	}
	if n := s.contexts.crowded.Load(); n != 0 || len(s.contexts.others) != 0 {
		t.Fatalf("%d and %d contexts have no place of their own", n, len(s.contexts.others))
	}
	for i := range s.shards {
		shard, free := &s.shards[i], 0
		if shard.first != nil {
			t.Fatalf("a shard has %+v", shard.first)
		}
		for p := shard.free; p != nil; p = p.next {
			free++
			if p.header != nil || p.context != nil || p.address != 0 || p.used != 0 {
				t.Fatalf("a free passage has kept %+v", p)
			}
			for _, v := range p.visits {
				if v.Place != nil || v.Before != nil || v.Origin != nil || v.Decision.Limiter != "" {
					t.Fatalf("a free passage has kept %v of %v", v.Decision, v.Place)
				}
			}
		}
		if free != shard.spare || free > maxFree {
			t.Fatalf("a shard has %d free passages, and counts %d", free, shard.spare)
		}
	}
}

func TestAServingHasARequestUntilItsFirstLimiterIsLeft(t *testing.T) {
	var s Serving
	outer, inner, context, r := place(), place(), new(int), sent()
	first := s.Enter(r, context, outer, named("outer"), nil)
	if s.Seen(r, context, outer) == nil || s.Seen(r, context, inner) != nil {
		t.Error("only the outer limiter has seen the request")
	}
	second := s.Enter(r, context, inner, named("inner"), &mounting.Origin{Target: 7})
	if second != nil {
		t.Error("the inner limiter ends the passage")
	}
	second.Leave()
	other := r.WithContext(t.Context())
	for name, row := range map[string]struct {
		r       *http.Request
		context any
	}{"itself": {r, context}, "another context of the request": {other, context}, "a copy of the framework's context": {r, new(int)}, "an unknown context": {other, nil}} {
		if got := limiters(&s, row.r, row.context); got != "outer inner last inner" {
			t.Errorf("%s reads %q", name, got)
		}
	}
	if seen := s.Seen(other, nil, inner); seen == nil || seen.Origin == nil || seen.Origin.Target != 7 {
		t.Errorf("the visit seen is %+v", seen)
	}
	first.Leave()
	if got := limiters(&s, r, context) + limiters(&s, nil, nil) + limiters(&s, new(http.Request), nil); got != "" {
		t.Errorf("after the request, the handler reads %q", got)
	}
	left(t, &s)
}

// A middleware has put a copy of the request in the request's place.
func TestARequestWithAnotherHeaderIsRecognisedByItsContext(t *testing.T) {
	var s Serving
	outer, inner := place(), place()
	// Some of so many contexts share a place.
	const requests = 2000
	contexts, first := make([]any, requests), make([]*Passage, requests)
	for i := range contexts {
		contexts[i] = new([2]int)
		first[i] = s.Enter(sent(), contexts[i], outer, named(fmt.Sprint(i)), nil)
	}
	for i, context := range contexts {
		copied := sent()
		if s.Seen(copied, context, outer) == nil {
			t.Fatalf("request %d is taken for another one", i)
		}
		if again := s.Enter(copied, context, inner, named("inner"), nil); again != nil {
			t.Fatalf("request %d has begun again", i)
		}
		if got, want := limiters(&s, copied, context), fmt.Sprint(i, " inner last inner"); got != want {
			t.Errorf("request %d reads %q, want %q", i, got, want)
		}
	}
	if s.contexts.crowded.Load() == 0 {
		t.Error("all contexts have a place of their own: this tests less than it should")
	}
	for i := range first { // in another order
		first[(i*7+3)%requests].Leave()
	}
	for i, context := range contexts {
		if got := limiters(&s, sent(), context); got != "" {
			t.Errorf("after request %d, its context reads %q", i, got)
		}
	}
	left(t, &s)
}

// A handler passes its request to the application again, or a test sends one request many
// times.
func TestPassagesOfOneRequestAreApart(t *testing.T) {
	for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}} {
		var s Serving
		p, r := place(), sent()
		var passages [3]*Passage
		contexts := [3]any{new(int), new(int), new(int)}
		for i, c := range contexts {
			if s.Seen(r, c, p) != nil {
				t.Fatal("the limiter has seen another passage")
			}
			passages[i] = s.Enter(r, c, p, named(fmt.Sprint(i)), nil)
		}
		for _, leaves := range order {
			for i, c := range contexts {
				if got, want := limiters(&s, r, c), fmt.Sprint(i, " last ", i); passages[i] != nil && got != want {
					t.Fatalf("passage %d reads %q", i, got)
				}
			}
			passages[leaves].Leave()
			passages[leaves] = nil
		}
		left(t, &s)
	}
}

// A request that a program makes may have no header.
func TestRequestsWithoutAHeaderAreToldApart(t *testing.T) {
	var s Serving
	p, a, b := place(), new(http.Request), new(http.Request)
	first := s.Enter(a, nil, p, named("a"), nil)
	if s.Seen(b, nil, p) != nil || s.Seen(a, nil, p) == nil {
		t.Error("two requests without a header are taken for one")
	}
	second := s.Enter(b, nil, p, named("b"), nil)
	if got := limiters(&s, a, nil) + ", " + limiters(&s, b, nil); got != "a last a, b last b" {
		t.Errorf("the handlers read %q", got)
	}
	first.Leave()
	second.Leave()
	left(t, &s)
}

func TestAServingIsUsedConcurrently(t *testing.T) {
	var s Serving
	outer, inner := place(), place()
	var clients sync.WaitGroup
	for client := range 8 {
		clients.Go(func() {
			for n := range 300 {
				r, context, name := sent(), new(int), fmt.Sprint(client, "/", n)
				func() {
					defer s.Enter(r, context, outer, named(name), nil).Leave()
					defer s.Enter(r, context, inner, named(name), nil).Leave()
					if got := limiters(&s, r, context); got != name+" "+name+" last "+name {
						t.Errorf("%s reads %q", name, got)
					}
				}()
			}
		})
	}
	clients.Wait()
	left(t, &s)
}

func BenchmarkServing(b *testing.B) {
	var s Serving
	p, context, r, d := place(), new(int), sent(), named("a")
	b.ReportAllocs()
	for b.Loop() {
		if s.Seen(r, context, p) == nil {
			s.Enter(r, context, p, d, nil).Leave()
		}
	}
}

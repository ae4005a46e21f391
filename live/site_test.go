package live_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a limiter, its page and a server of the page.
type site struct {
	t       *testing.T
	page    *live.Page
	limiter *core.Limiter
	server  *httptest.Server
	log     *bytes.Buffer
}

var userRule = core.Rule{Name: "user", Limits: []core.Limit{core.PerMinute(3)}}

func newSite(t *testing.T, c live.Config, l core.Config) *site {
	t.Helper()
	s := &site{t: t, log: new(bytes.Buffer)}
	c.Log = slog.New(slog.NewTextHandler(s.log, nil))
	c.Instance = "one"
	s.page = core.Must(live.New(c))
	l.Name, l.Observer = "api", s.page
	if l.Rules == nil {
		l.Rules = []core.Rule{userRule}
	}
	s.limiter = core.Must(core.New(l))
	s.page.Manage(s.limiter)
	s.server = httptest.NewServer(http.StripPrefix("/any/prefix", s.page))
	t.Cleanup(func() {
		_ = s.page.Close()
		s.server.Close()
	})
	return s
}

func (s *site) url() string { return s.server.URL + "/any/prefix" }

func (s *site) take(n int, keys ...string) {
	s.t.Helper()
	for range n {
		for _, k := range keys {
			if _, err := s.limiter.Take(s.t.Context(), 1, core.Hit{Rule: "user", Key: k}); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

type answered struct {
	status int
	Error  string
	Note   string
	Limits []struct {
		Limit               string
		Capacity, Remaining int64
		Exceeded            bool
		RetryMS             int64
	}
}

// post sends an order as the page does.
func (s *site) post(order string, headers ...string) answered {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.url(), strings.NewReader(order))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.server.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	a := answered{status: resp.StatusCode}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		s.t.Fatal(err)
	}
	return a
}

type shown struct {
	Instance string
	ReadOnly bool
	Second   int
	Logins   []string
	Limiters []struct {
		Name            string
		Managed, Shared bool
		Store           struct{ Asked, Failed, Degraded, Errors, MeanMS, MostMS float64 }
		Rules           []struct {
			Name, Limits            any
			Allowed, Denied, DryRun []int
		}
		Denied, Near []struct {
			ID, Rule, Label string
			Count, Over     int
			Ago             int
			Used            float64
			Cut             bool
		}
	}
}

// watch returns a function that returns the state of the next second.
func (s *site) watch() func() shown {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url()+"?events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.server.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return func() shown {
		s.t.Helper()
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var v shown
				if err := json.Unmarshal([]byte(text), &v); err != nil {
					s.t.Fatal(err)
				}
				return v
			}
		}
		s.t.Fatal("no more events:", lines.Err())
		return shown{}
	}
}

func mayChange(who string) func(*http.Request, live.Action) (string, error) {
	return func(*http.Request, live.Action) (string, error) { return who, nil }
}

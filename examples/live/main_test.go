package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/exampletest"
	"github.com/floodgate-go/floodgate/live"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Only this machine, under a name of its own, is an operator.
func TestOperators(t *testing.T) {
	for c, want := range map[[2]string]bool{
		{"127.0.0.1:8080", "127.0.0.1:5"}: true, {"[::1]:8080", "[::1]:5"}: true, {"localhost:8080", "127.0.0.1:5"}: true, {"site.test:8080", "127.0.0.1:5"}: false,
		{"192.0.2.1:8080", "127.0.0.1:5"}: false, {"localhost.site.test:8080", "127.0.0.1:5"}: false, {"localhost:8080", "192.0.2.1:5"}: false, {"localhost:8080", ""}: false,
	} {
		if who, err := operator(&http.Request{Host: c[0], RemoteAddr: c[1]}, live.Action{}); (err == nil) != want || (who == "local") != want {
			t.Errorf("%+v: %q, %v", c, who, err)
		}
	}
}

// The page shows the traffic of the program, and an operator on this machine lets a client in.
func TestTheProgram(t *testing.T) {
	base, _ := exampletest.Serve(t, func(ctx context.Context, _ *slog.Logger, listening func(net.Addr)) error {
		return run(ctx, "127.0.0.1:0", true, slog.New(slog.DiscardHandler), listening)
	})
	base += "/admin/limits"
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp := core.Must(client.Get(base + "?events"))
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	var id string
	for id == "" && lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var s struct {
			Limiters []struct {
				Name   string
				Denied []struct{ ID, Label, Rule string }
			}
		}
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		for _, l := range s.Limiters {
			for _, k := range l.Denied {
				if l.Name == "gateway" && k.Label == "203.0.113.7" && strings.HasPrefix(k.Rule, "search") {
					id = k.ID
				}
			}
		}
	}
	order := strings.NewReader(`{"do":"unblock","limiter":"gateway","id":"` + id + `"}`)
	answer, err := client.Post(base, "application/json", order)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", answer, err)
	}
	_ = answer.Body.Close()
	_ = resp.Body.Close()
}

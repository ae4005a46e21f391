package replay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
)

// A report says by how much the counts of keys may be too small, and by how much those of clients.
func TestKeysAndClientsMissCountsByThemselves(t *testing.T) {
	var clients, keys strings.Builder
	for i := range 100 {
		clients.WriteString(line(0, fmt.Sprint("10.0.0.", i), "GET /"))
		keys.WriteString(line(0, "10.0.0.1", fmt.Sprint("GET /?k=", i)))
	}
	for name, c := range map[string]struct {
		log           string
		keys, clients bool // whether some are missed
	}{"many clients": {clients.String(), false, true}, "many keys": {keys.String(), true, false}} {
		config := config(`policies: [{name: a, key: 'query["k"]', missing: own-bucket, limits: 9/h}]`)
		config.MaxKeys = 10
		f := run(t, config, c.log).Files[0]
		if f.KeysHeld != 10 || f.KeysMissed > 0 != c.keys || f.Clients.Missed > 0 != c.clients {
			t.Errorf("%s: %d keys are held, %d may be missed of a key and %d of a client", name, f.KeysHeld, f.KeysMissed, f.Clients.Missed)
		}
	}
}

// A replay holds as many routes as keys. It forgets the rarer ones.
func TestRoutesAreBounded(t *testing.T) {
	var log strings.Builder
	for i := range 100 {
		log.WriteString(line(0, "10.0.0.1", "GET /often") + line(0, "10.0.0.1", "GET /"+strings.Repeat("x", i+1)))
	}
	c := config("policies: [{name: a, limits: 0/h}]")
	c.MaxKeys, c.Top = 5, 1000
	if f := run(t, c, log.String()).Files[0]; len(f.Routes) > 5 || f.Routes[0].Route != "GET /often" || f.Routes[0].Requests != 100 {
		t.Errorf("%d routes, want 5 at most: %+v", len(f.Routes), f.Routes)
	}
}

// A route has the path as it was sent: an escaped slash separates nothing.
func TestTheRouteOfAnEscapedPath(t *testing.T) {
	f := run(t, config("policies: [{name: a, limits: 0/h}]"), line(0, "a", "GET /files/a%2F17")).Files[0]
	if want := []replay.RouteReport{{Route: "GET /files/a%2F17", Requests: 1, Denied: 1}}; !slices.Equal(f.Routes, want) {
		t.Errorf("the routes: %+v, want %+v", f.Routes, want)
	}
}

// A bad request is denied on its route and to its client, and not by a policy.
func TestABadRequestIsDenied(t *testing.T) {
	f := run(t, config(`policies: [{name: a, key: 'query["id"]', missing: reject, limits: 1/h}]`), line(0, "192.0.2.1", "GET /x")).Files[0]
	if want := []replay.RouteReport{{Route: "GET /x", Requests: 1, Denied: 1}}; !slices.Equal(f.Routes, want) || f.Clients.Denied != 1 || f.Clients.HonestDenied != 1 || f.Policies[0].Denied != 0 || f.Series.Points[0].Denied != 1 {
		t.Errorf("the routes: %+v, want %+v; the clients: %+v; the policies: %+v; over time: %+v", f.Routes, want, f.Clients, f.Policies, f.Series)
	}
}

// A late request counts in the minute in which it is decided.
func TestTheMinuteOfALateRequest(t *testing.T) {
	f := run(t, config("policies: [{name: a, limits: 1/h}]"), line(0, "a", "GET /")+line(180, "a", "GET /")+line(60, "a", "GET /")).Files[0]
	if want := []replay.Point{{Allowed: 1}, {}, {}, {Denied: 2}}; !slices.Equal(f.Series.Points, want) {
		t.Errorf("over time: %+v, want %+v", f.Series.Points, want)
	}
}

// No log has the parameters of a route: it is noted that a policy asks for one.
func TestALogLacksParametersOfRoutes(t *testing.T) {
	r := run(t, config(`policies: [{name: a, key: 'param["id"]', missing: own-bucket, limits: 9/h}]`), line(0, "a", "GET /items/5"))
	if want := []string{`the path value "id"`}; !slices.Equal(r.Missing, want) {
		t.Errorf("missing: %q, want %q", r.Missing, want)
	}
}

// What a report says does not change if another log is run.
func TestAReportIsACopy(t *testing.T) {
	r, err := replay.New(config("policies: [{name: a, limits: 1/h}]"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // its counters are in memory
	log := func() replay.Log {
		return replay.Log{Name: "log", Reader: strings.NewReader(line(0, "a", "GET /") + line(1, "b", "POST /"))}
	}
	if err := r.Run(t.Context(), log()); err != nil {
		t.Fatal(err)
	}
	first := r.Report()
	said := fmt.Sprintf("%+v", *first)
	if err := r.Run(t.Context(), log()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%+v", *first); got != said {
		t.Errorf("the report of the first log says %s, want %s", got, said)
	}
	if second := r.Report(); second.Requests != 4 || second.Files[0].Denied != 3 || !slices.Equal(second.Logs, []string{"log", "log"}) {
		t.Errorf("the report of both logs: %+v", second)
	}
}

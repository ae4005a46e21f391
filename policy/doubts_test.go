package policy_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/policy"
)

// What is legal and probably a mistake is said, and logged once.
func TestWarnings(t *testing.T) {
	for text, want := range map[string][]string{
		`policies: [{name: a, key: ip, limits: 1/h}]`:                                                                                      nil,
		`policies: [{name: a, limits: 1/h}, {name: b, key: 'header["x"]', limits: 1/h}]`:                                                   nil,
		`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/h}]`:                                                             {"policies[0].key: \"header[\\\"x\\\"]\": a client that changes the header"},
		`policies: [{name: a, key: 'cookie["x"] + ip', limits: 1/h}, {name: b, key: ip, limits: 1/h, shadow: true}]`:                       {"policies[0].key: "},
		`policies: [{name: a, key: 'query["x"]', limits: 1/h, match: {paths: [/x]}}, {name: b, limits: 1/h, match: {paths: [/y]}}]`:        {"policies[0].key: "},
		`policies: [{name: a, match: {paths: [/x]}, rules: [{name: r, key: 'query["x"]', limits: 1/h}, {name: s, key: ip, limits: 9/h}]}]`: nil,
		`policies: [{name: a, key: ip, tier: 'header["x-plan"]', tiers: {default: 1/h, staff: unlimited}}]`:                                {"policies[0].tier: \"header[\\\"x-plan\\\"]\": a client writes the header itself, and so chooses its tier (have the program"},
		`policies: [{name: a, limits: 1/h, cost: 'int(json["n"])'}, {name: b, limits: 1/h, cost: 'len(path)'}]`:                            {"policies[0].cost: \"int(json[\\\"n\\\"])\": a client writes the JSON field itself, and so chooses what its request costs (see"},
		`policies: [{name: a, key: route, limits: 1/h}]`:                                                                                   {"policies[0].key: \"route\": the route is known only"},
		`policies: [{name: a, rules: [{name: r, key: "#[attributes.headers['x']]", limits: 1/h}]}]`:                                        {"policies[0].rules[0].key: "},
	} {
		var log bytes.Buffer
		set, err := policy.Parse("f", []byte(text), policy.Log(slog.New(slog.NewTextHandler(&log, nil))))
		if err != nil {
			t.Fatal(err)
		}
		all := set.Warnings()
		if len(all) != len(want) {
			t.Errorf("%s: %v", text, all)
		}
		for i := range min(len(all), len(want)) {
			if !strings.Contains(all[i].Error(), want[i]) {
				t.Errorf("%s:\n%v\nwant\n%s", text, all[i], want[i])
			}
		}
		if err := set.Replace([]byte(text)); err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != len(want) {
			t.Errorf("%s: %d warnings are logged:\n%s", text, n, &log)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A list of denied addresses is for CORS preflights too.
func TestADeniedAddressSendsNoPreflight(t *testing.T) {
	s := newSite(t, `policies: [{name: all, limits: 0/s, match: {paths: [/api/**]}, deny: [10.6.0.0/16], allow: [10.6.6.6]}]`)
	preflight := []option{header("Origin", "https://a.example"), header("Access-Control-Request-Method", "PUT")}
	s.expect(403, "OPTIONS", "/api/x", append(preflight, from("10.6.0.1"))...)
	s.expect(200, "OPTIONS", "/api/x", append(preflight, from("10.6.6.6"))...)
	s.expect(200, "OPTIONS", "/api/x", append(preflight, from("10.7.0.1"))...)
	s.expect(200, "OPTIONS", "/other", append(preflight, from("10.6.0.1"))...)
}

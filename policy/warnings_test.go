package policy_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// What is legal and probably a mistake is said, and logged once.
func TestWarnings(t *testing.T) {
	for text, want := range map[string][]string{
		`policies: [{name: a, key: ip, limits: 1/h}]`:                              nil,
		`policies: [{name: a, key: ip, limits: 9/d bucketed_window precision=1m}]`: {"policies[0]: 9 per 1d (bucketed_window, precision 1m): a key takes up to 8 KiB, so that at most 32768 keys are held at a time"},
		`policies: [{name: a, key: ip, limits: 9/d bucketed_window precision=1m}]
local: {max-keys: 5000}`: nil,
		`policies: [{name: a, limits: 1/h}, {name: b, key: 'header["x"]', missing: reject, limits: 1/h}]`:                                                                                  nil,
		`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/h}]`:                                                                                                             {"policies[0].key: \"header[\\\"x\\\"]\": a client that changes the header"},
		`policies: [{name: a, key: 'cookie["x"] + ip', limits: 1/h}, {name: b, key: ip, limits: 1/h, dry-run: true}]`:                                                                      {"policies[0].key: "},
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, match: {paths: [/x]}}, {name: b, limits: 1/h, match: {paths: [/y]}}]`:                                       {"policies[0].key: "},
		`policies: [{name: a, match: {paths: [/x]}, rules: [{name: r, key: 'query["x"]', missing: reject, limits: 1/h}, {name: s, key: ip, limits: 9/h}]}]`:                                nil,
		`policies: [{name: a, key: ip, tier: 'header["x-plan"]', tiers: {default: 1/h, staff: unlimited}}]`:                                                                                {"policies[0].tier: \"header[\\\"x-plan\\\"]\": a client writes the header itself, and so chooses its tier (have the program"},
		`policies: [{name: a, limits: 1/h, cost: 'int(json["n"])'}, {name: b, limits: 1/h, cost: 'len(path)'}]`:                                                                            {"policies[0].cost: \"int(json[\\\"n\\\"])\": a client writes the JSON field itself, and so chooses what its request costs (see"},
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, match: {paths: [/x]}}, {name: b, limits: 1/h}]`:                                                             nil,
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h}, {name: b, limits: 1/h, match: {paths: [/x]}}]`:                                                             {"policies[0].key: "},
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, match: {methods: [GET]}}, {name: b, limits: 1/h}]`:                                                          nil,
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, match: {methods: [GET]}}, {name: b, limits: 1/h, match: {methods: [GET]}}]`:                                 nil,
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h}, {name: b, limits: 1/h, match: {methods: [GET]}}]`:                                                          {"policies[0].key: "},
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, match: {methods: [GET]}}, {name: b, limits: 1/h, match: {methods: [PUT]}}]`:                                 {"policies[0].key: "},
		`policies: [{name: a, key: '"x-api-key"', limits: 1/h}]`:                                                                                                                           {"policies[0].key: \"\\\"x-api-key\\\"\": is the same for all requests"},
		`policies: [{name: a, key: route, limits: 1/h}]`:                                                                                                                                   {"policies[0].key: \"route\": the route is known only"},
		`policies: [{name: a, limits: 9/h}, {name: b, key: 'header["x"]', limits: 1/h}]`:                                                                                                   {"policies[1].key: \"header[\\\"x\\\"]\": all requests without it share one counter (write fallback: ip"},
		`policies: [{name: a, limits: 9/h}, {name: b, key: user, limits: 1/h}]`:                                                                                                            {"policies[1].key: \"user\": all requests without it share one counter ("},
		`policies: [{name: a, limits: 9/h}, {name: b, key: user, fallback: 'cookie["c"]', limits: 1/h}]`:                                                                                   {"policies[1].key: \"user\": all requests without it share"},
		`policies: [{name: a, limits: 9/h}, {name: b, key: user, fallback: ip, limits: 1/h}]`:                                                                                              nil,
		`policies: [{name: a, limits: 9/h}, {name: b, key: user, missing: own-bucket, limits: 1/h}]`:                                                                                       nil,
		`policies: [{name: b, key: user, missing: skip, limits: 1/h}]`:                                                                                                                     nil,
		`policies: [{name: b, key: 'method + user', limits: 1/h}]`:                                                                                                                         nil,
		`{trusted-headers: [X-Plan, x-id], policies: [{name: a, key: 'header["X-ID"]', missing: reject, tier: 'header["x-plan"]', tiers: {default: 1/h}, cost: 'len(header["x-plan"])'}]}`: nil,
		`{trusted-headers: [X-Id], policies: [{name: a, key: 'header["x-id"] + header["x"]', missing: reject, limits: 1/h}]}`:                                                              {"policies[0].key: "},
		`{trusted-headers: [X-Id], policies: [{name: a, key: 'query["x-id"]', missing: reject, limits: 1/h}]}`:                                                                             {"policies[0].key: \"query[\\\"x-id\\\"]\": a client that changes"},
		`policies: [{name: a, limits: ["9/m, 0/h"]}, {name: b, limits: 1/s}]`:                                                                                                              {"policies[0].limits[0]: \"0/h\": denies all requests (write 1 or more"},
		`policies: [{name: a, limits: {maximumRequests: 0, timePeriodInMilliseconds: 1000}}]`:                                                                                              {"policies[0].limits.maximumRequests: 0: denies all requests (write 1 or more"},
		`policies: [{name: a, limits: 1/h, only: [10.0.0.0/8], exempt: [192.0.2.1, 10.1.0.0/16]}]`:                                                                                         {"policies[0].exempt: 192.0.2.1/32: is denied, because only does not have it (write it in only too)"},
		`policies: [{name: a, limits: 1/h, only: [10.1.0.0/16, 192.0.2.0/24], deny: [10.0.0.0/8, 192.0.2.7]}]`:                                                                             {"policies[0].only: 10.1.0.0/16: all of it is denied, because deny has 10.0.0.0/8 ("},
		`policies: [{name: a, rules: [{name: r, key: "#[attributes.headers['x']]", missing: skip, limits: 1/h}]}]`:                                                                         {"policies[0].rules[0].key: "},
		`policies: [{name: a, limits: 1/h, only: [10.0.0.0/8], deny: [10.0.0.0/16]}]`:                                                                                                      nil,
		`policies: [{name: a, limits: 9/h}, {name: b, key: 'param["id"]', missing: skip, limits: 1/h}]`:                                                                                    {"policies[1].key: \"param[\\\"id\\\"]\": the parameters of a route are known only to policies that are mounted after routing"},
		`policies: [{name: b, key: 'param["id"]', missing: reject, limits: 1/h}]`:                                                                                                          {"policies[0].key: \"param[\\\"id\\\"]\": the parameters of a route", "policies[0].key: \"param[\\\"id\\\"]\": a client that changes the path parameter gets another counter"},
		`policies: [{name: a, limits: 1/s, wait: 1m}]`:                                                                                                                                     nil,
		`policies: [{name: a, limits: 1/s, wait: 90m}]`:                                                                                                                                    {"policies[0].wait: 1h30m: many clients and proxies give up before, and a request that waits keeps its connection (write 1m or less)"},
		`{local: {max-waiting: 2, max-waiting-of-key: 3}, policies: [{name: a, limits: 1/s, wait: 1s}]}`:                                                                                   {"local.max-waiting-of-key: 3: no more than max-waiting (2) wait at a time, for all keys together (write a smaller number, or a larger max-waiting)"},
		`{local: {max-waiting: 3, max-waiting-of-key: 3}, policies: [{name: a, limits: 1/s, wait: 1s}]}`:                                                                                   nil,
		`{local: {max-waiting: 3}, policies: [{name: a, limits: 1/s, wait: 1s}]}`:                                                                                                          nil,
		// A dry run limits nobody: it needs no other rule, and none can rely on it.
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, dry-run: true}]`:                                  nil,
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h}, {name: b, key: ip, limits: 1/h, dry-run: true}]`: {"policies[0].key: \"query[\\\"x\\\"]\": a client that changes the query parameter"},
		// Nor can one rely on a rule whose tier a client chooses.
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h}, {name: b, key: ip, tier: 'header["t"]', tiers: {default: 1/h, staff: unlimited}}]`: {"policies[1].tier: ", "policies[0].key: \"query[\\\"x\\\"]\": a client that changes the query parameter"},
		`policies: [{name: a, key: user, fallback: route, limits: 1/h}]`:                                                                                           {"policies[0].key: \"user\": all requests without it share", "policies[0].fallback: \"route\": the route is known only"},
	} {
		var log bytes.Buffer
		set, err := policy.Parse("f", []byte(text), policy.WithUser(func(core.Request) string { return "" }), policy.Log(slog.New(slog.NewTextHandler(&log, nil))))
		if err != nil {
			t.Fatal(err)
		}
		all := set.Warnings()
		if len(all) != len(want) {
			t.Errorf("%s: %v", text, all)
		}
		for i := range min(len(all), len(want)) {
			if all[i].File != "f" || all[i].Line != 1 || all[i].Column == 0 || all[i].Hint == "" || !strings.Contains(all[i].Error(), want[i]) {
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
	s := newSite(t, `policies: [{name: all, limits: 0/s, match: {paths: [/api/**]}, deny: [10.6.0.0/16], exempt: [10.6.6.6]}]`)
	preflight := []option{header("Origin", "https://a.example"), header("Access-Control-Request-Method", "PUT")}
	s.expect(403, "OPTIONS", "/api/x", append(preflight, from("10.6.0.1"))...)
	s.expect(200, "OPTIONS", "/api/x", append(preflight, from("10.6.6.6"))...)
	s.expect(200, "OPTIONS", "/api/x", append(preflight, from("10.7.0.1"))...)
	s.expect(200, "OPTIONS", "/other", append(preflight, from("10.6.0.1"))...)
}

package file

import "testing"

// What is legal and probably a mistake is noted, and nothing else is.
func TestWhatIsLegalAndProbablyAMistake(t *testing.T) {
	for _, c := range []said{
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s}]`, []string{
			`1:27: "header[\"x\"]": a client that changes the header gets another counter each time,`, "add a policy with key: ip for the same",
		}},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s}, {name: b, key: ip, limits: 1/s}]`, nil},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s}, {name: b, key: ip, limits: 1/s, dry-run: true}]`, []string{
			`1:27: "header[\"x\"]": a client that changes the header gets another counter each time,`, "add a policy with key: ip for the same",
		}},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s}, {name: b, key: ip, limits: 1/s, match: {when: 'method == "GET"'}}]`, []string{
			`1:27: "header[\"x\"]": a client that changes the header gets another counter each time,`, "add a policy with key: ip for the same",
		}},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s, match: {methods: [GET]}}, {name: b, key: ip, limits: 1/s, match: {methods: [GET]}}]`, nil},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s, match: {methods: [GET]}}, {name: b, key: ip, limits: 1/s, match: {methods: [POST]}}]`, []string{
			`1:27: "header[\"x\"]": a client that changes the header gets another counter each time,`, "add a policy with key: ip for the same",
		}},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s, match: {methods: [GET]}}, {name: b, key: ip, limits: 1/s}]`, nil},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s, match: {paths: [/a]}}, {name: b, key: ip, limits: 1/s, match: {paths: [/a]}}]`, nil},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s, match: {paths: [/a]}}, {name: b, key: ip, limits: 1/s, match: {paths: [/b]}}]`, []string{
			`1:27: "header[\"x\"]": a client that changes the header gets another counter each time,`, "add a policy with key: ip for the same",
		}},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s, match: {paths: [/a]}}, {name: b, key: ip, limits: 1/s}]`, nil},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s}, {name: b, key: ip, tier: 'header["y"]', tiers: {default: 1/s, t: 2/s}}]`, []string{
			`1:95: "header[\"y\"]": a client writes the header itself, and so chooses its tier`, "have the program say the tier with",
			`1:27: "header[\"x\"]": a client that changes the header gets another counter each time,`, "add a policy with key: ip for the same",
		}},
		{`policies: [{name: a, match: {when: 'method == "GET"', paths: [/a], methods: [GET]}, rules: [{name: x, key: 'header["x"]', fallback: ip, limits: 1/s}, {name: y, key: ip, limits: 1/s}]}]`, nil},
		{`policies: [{name: a, key: ip, cost: 'len(query["x"])', limits: 1/s}]`, []string{
			`1:37: "len(query[\"x\"])": a client writes the query parameter itself, and so chooses`, "see that the cost cannot be less than what",
		}},
		{"policies: [{name: a, key: ip, cost: 'len(path)', limits: 1/s}]", nil},
		{`policies: [{name: a, key: 'header["x"]', fallback: route, limits: 1/s}, {name: b, key: ip, limits: 1/s}]`, []string{
			`1:27: "header[\"x\"]": all requests without it share one counter`, "write fallback: ip to count them by address,",
			`1:52: "route": the route is known only to policies that are mounted after routing`, "mounted before it, all requests share one",
		}},
		{`policies: [{name: a, key: 'param["x"]', missing: skip, limits: 1/s}, {name: b, key: ip, limits: 1/s}]`, []string{
			`1:27: "param[\"x\"]": the parameters of a route are known only to policies that are`, "mounted before it, the value is empty for",
		}},
		{"policies: [{name: a, wait: 60s, limits: 1/s}]", nil},
		{"policies: [{name: a, wait: 60001ms, limits: 1/s}]", []string{
			"1:28: 1m0.001s: many clients and proxies give up before, and a request that waits keeps", "write 1m or less",
		}},
		{"{local: {max-waiting: 10, max-waiting-of-key: 10}, policies: [{name: a, limits: 1/s}]}", nil},
		{"{local: {max-waiting: 10, max-waiting-of-key: 11}, policies: [{name: a, limits: 1/s}]}", []string{
			"1:47: 11: no more than max-waiting (10) wait at a time, for all keys together", "write a smaller number, or a larger",
		}},
		{"policies: [{name: a, key: ip, quotas: {s: 0}, limits: 1/s}]", []string{
			"1:43: 0: denies all requests of the key", "write 1 or more; leave the key out for the limit's own quota",
		}},
		{"policies: [{name: a, key: ip, quotas: {s: 5/s, t: unlimited}, limits: 1/s}]", nil},
		{"policies: [{name: a, only: [10.1.0.0/16], deny: [10.0.0.0/8], limits: 1/s}]", []string{
			"1:28: 10.1.0.0/16: all of it is denied, because deny has 10.0.0.0/8", "leave one of the two out",
		}},
		{"policies: [{name: a, only: [10.0.0.0/8], deny: [10.1.0.0/16], limits: 1/s}]", nil},
		{"policies: [{name: a, only: [10.1.0.0/16], deny: [11.0.0.0/8], limits: 1/s}]", nil},
		{"policies: [{name: a, exempt: [11.0.0.0/8], limits: 1/s}]", nil},
		{"policies: [{name: a, only: [10.0.0.0/8], exempt: [11.0.0.0/8], limits: 1/s}]", []string{
			"1:50: 11.0.0.0/8: is denied, because only does not have it", "write it in only too",
		}},
	} {
		c.check(t)
	}
}

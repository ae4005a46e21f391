package file

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// said is a file and what is said of it: the beginnings of each message and of its hint.
type said struct {
	file string
	want []string
}

// check reads the file and compares what is wrong, and then what is doubted.
func (c said) check(t *testing.T) {
	t.Helper()
	spec, problems := Read([]byte(c.file), Options{User: func(core.Request) string { return "" }, Tier: true})
	got := slices.Concat(problems, spec.Doubts)
	fine := 2*len(got) == len(c.want)
	for i := 0; fine && i < len(got); i++ {
		at := fmt.Sprintf("%d:%d: %s", got[i].Line, got[i].Column, got[i].Text)
		fine = strings.HasPrefix(at, c.want[2*i]) && strings.HasPrefix(got[i].Hint, c.want[2*i+1]) && (c.want[2*i+1] == "") == (got[i].Hint == "")
	}
	if !fine {
		t.Errorf("%s\ngot  %+v\nwant %q", c.file, got, c.want)
	}
}

// A mistake has its place, says what is wrong, and has a hint only if there is something
// better to write.
func TestThePlaceTheWordsAndTheHintOfAMistake(t *testing.T) {
	for _, c := range []said{
		{"policies: [{name: a, wait: 0, limits: 1/s}]", []string{
			"1:28: 0: want a length of time such as 500ms or 6s", "leave wait out if no request shall wait",
		}},
		{"policies: [{name: a, wait: '0s', limits: 1/s}]", []string{
			`1:28: "0s": want a length of time such as 500ms or 6s`, "leave wait out if no request shall wait",
		}},
		{"policies: [{name: a, wait: -5, limits: 1/s}]", []string{
			"1:28: -5: want a length of time such as 500ms or 6s", "leave wait out if no request shall wait",
		}},
		{"policies: [{name: a, wait: 5, limits: 1/s}]", []string{
			"1:28: 5: is not text: want a length of time such as 500ms or 6s", "write a unit behind the number, as in 5s",
		}},
		{"policies: [{name: a, wait: -1ms, limits: 1/s}]", []string{
			`1:28: "-1ms": want a length of time such as 500ms or 6s`, "leave wait out if no request shall wait",
		}},
		{"policies: [{name: a, wait: soon, limits: 1/s}]", []string{
			`1:28: "soon": want a length of time such as 500ms or 6s`, "units are ms, s, m, h, d and w; 366 days at",
		}},
		{"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, limits: 5 in flight}]}", []string{
			"1:57: 5 in flight: a synced store does not count what is in flight", "count in Redis, or write counting: local",
		}},
		{"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, limits: 1/day UTC}]}", []string{
			"1:57: 1 per day UTC: a synced store does not count by the calendar of a time zone", "write fixed_window aligned in place of the",
		}},
		{"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, limits: 1/d}]}", []string{
			"1:57: 1 per 1d: a synced store counts aligned fixed_window and sliding_window limits", "write aligned behind the limit",
		}},
		{"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, limits: '1/d aligned, 1/h fixed_window aligned'}]}", nil},
		{"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, limits: 1/d token_bucket}]}", []string{
			"1:57: 1 per 1d (token_bucket): a synced store counts aligned fixed_window and", "write aligned behind the limit",
		}},
		{"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, counting: local, limits: 1/d token_bucket}]}", nil},
		{"{store: {memcached: {servers: ['a:1']}}, policies: [{name: a, limits: 1/30d fixed_window}]}", []string{
			"1:53: 1 per 30d (fixed_window): its hits count for 720h, and a store in memcached keeps", "",
		}},
		{"{store: {memcached: {servers: ['a:1']}}, policies: [{name: a, limits: '1/d, 1/15d'}]}", []string{
			"1:53: 1 per 15d: its hits count for 720h, and a store in memcached keeps them for at", "",
		}},
		{"{store: {memcached: {servers: ['a:1']}}, policies: [{name: a, limits: 1/month UTC}]}", []string{
			"1:53: 1 per month UTC: its hits count for 771h, and a store in memcached keeps them for", "write week, or count in Redis",
		}},
		{"{store: {redis: {address: 'a:1'}}, policies: [{name: a, limits: 1/month UTC}]}", nil},
		{"policies: [{name: a, counting: shared, limits: 1/s}]", []string{
			"1:32: shared: the file has no store", "write a store before the policies, or",
		}},
		{"policies: [{name: a, headers: draft-10, limits: 1/s}, {name: b, headers: draft-07, limits: 1/s}]", []string{
			"1:74: draft-07 and draft-10 write the same headers, and the policy a in line 1 has the", "write one of them in all policies",
		}},
		{"policies: [{name: a, headers: draft-10, limits: 1/s}, {name: b, headers: draft-10, limits: 1/s}, {name: c, headers: x-seconds, limits: 1/s}]", nil},
		{"policies: [{name: a, headers: draft-10, dry-run: true, limits: 1/s}, {name: b, headers: draft-07, limits: 1/s}]", nil},
		{"policies: [{name: a, limits: '1/s,  5/y, 3/q'}]", []string{
			`1:37: window: "y": want a unit such as s, m, h, d, w or month, or a whole number and a`, "a limit is a quota, a slash and a window, as",
			`1:42: window: "q": want a unit such as s, m, h, d, w or month, or a whole number and a`, "a limit is a quota, a slash and a window, as",
		}},
		{`policies: [{name: a, limits: "1/s,5/y"}]`, []string{
			`1:35: window: "y": want a unit such as s, m, h, d, w or month, or a whole number and a`, "a limit is a quota, a slash and a window, as",
		}},
		{"policies:\n- name: a\n  limits: 1/s, 5/y", []string{
			`3:16: window: "y": want a unit such as s, m, h, d, w or month, or a whole number and a`, "a limit is a quota, a slash and a window, as",
		}},
		{"policies:\n- name: a\n  key: ip +\n    foo\n  limits: 1/s", []string{
			`3:13: "ip + foo": unknown name foo`, "known are method, path, route, ip, user,",
		}},
		{"policies:\n- name: a\n  key: \"ip + foo\"\n  limits: 1/s", []string{
			`3:14: "ip + foo": unknown name foo`, "known are method, path, route, ip, user,",
		}},
		{"policies:\n- name: a\n  key: ip + foo\n  limits: 1/s", []string{
			`3:13: "ip + foo": unknown name foo`, "known are method, path, route, ip, user,",
		}},
		{"policies: [{name: a, limit: 1/s}]", []string{
			"1:22: there is no such field", "did you mean limits?",
			"1:12: the field limits is missing", "want limits such as 3/6s, or a list of them",
		}},
		{"policies: [{name: a, zzzzzz: 1, limits: 1/s, limits: 2/s}]", []string{
			"1:46: stands twice, in line 1 too", "",
			"1:22: there is no such field", "the fields here are name, match, rules,",
		}},
		{"policies:\n- name: a\n  match:\n  limits: 1/s", []string{
			"3:3: nothing: want a mapping with methods, paths and when", "is anything missing below it?",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: day, zone: berlin}}]", []string{
			`1:60: "berlin": want a time zone such as Europe/Berlin or UTC`, "",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: day, zone: Africa/Nowhere}}]", []string{
			`1:60: zone: "Africa/Nowhere": cannot be loaded: write the name of a time zone such as`, "",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: day, zone: Zzz/Nowhere}}]", []string{
			`1:60: zone: "Zzz/Nowhere": cannot be loaded: write the name of a time zone such as`, "",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: day, zone: '@x'}}]", []string{
			`1:60: "...@x": want a time zone such as Europe/Berlin or UTC`, "",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: day, zone: '[x'}}]", []string{
			`1:60: "[x": want a time zone such as Europe/Berlin or UTC`, "",
		}},
		{"policies: [{name: a, limits: {in-flight: 5, lease: 1s}}]", nil},
		{"policies: [{name: a, limits: {in-flight: 5, lease: 999ms}}]", []string{
			"1:52: 999ms: must be from 1s to 366 days", "write lease: 1m, or leave it out",
		}},
		{"policies: [{name: a, limits: {in-flight: 5, lease: 366d}}]", nil},
		{"policies: [{name: a, limits: {quota: 1, window: 1m, algorithm: bucketed_window}}]", []string{
			"1:30: Precision: 0s: bucketed_window needs the length of a bucket, which must divide the Window (1m0s): a sixtieth of it, for instance", "bucketed_window needs the length of its",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: 1m, algorithm: bucketed_window, precision: 7s}}]", []string{
			"1:30: Precision: 7s: must divide the Window (1m0s)", "",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: 1h, zone: UTC}}]", []string{
			"1:30: Zone: UTC: a window of 1h is not a day, a week or a month, and only these have a", "with zone, write window: day, week or month",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: day, zone: UTC, algorithm: token_bucket}}]", []string{
			"1:30: Zone: UTC: only fixed_window has the windows of a calendar, not token_bucket:", "",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: day, zone: UTC, aligned: true}}]", []string{
			"1:30: Aligned: true: the windows of a limit with a Zone are aligned to its calendar:", "",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: 1h, burst: 5}}]", []string{
			"1:30: Burst: 5: only token_bucket has one, not sliding_window", "",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: 1h, algorithm: leaky_bucket}}]", []string{
			`1:64: "leaky_bucket": want sliding_window, fixed_window, bucketed_window, sliding_log,`, "leaky_bucket as a meter is called",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: 1h, algorithm: fixed_windw}}]", []string{
			`1:64: "fixed_windw": want sliding_window, fixed_window, bucketed_window, sliding_log,`, "did you mean fixed_window?",
		}},
		{"policies: [{name: a, missing: reect, limits: 1/s}]", []string{
			`1:31: "reect": want own-bucket, skip or reject`, "did you mean reject?",
			"1:31: there is no key that could be missing", "without a key all requests share one counter",
		}},
		{"policies: [{name: a, limits: [1/day UTC, 2/day Europe/Berlin, 1/s, 2/s]}]", []string{
			"1:30: 1 per 1s and 2 per 1s count the same: only the smaller can matter", "leave one out",
		}},
	} {
		c.check(t)
	}
}

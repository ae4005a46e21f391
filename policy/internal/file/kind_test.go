package file

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// A password file may end as editors of any system end a line. Nothing else of it is
// cut.
func TestAPasswordFile(t *testing.T) {
	for _, c := range [][2]string{
		{"s3cret", "s3cret"}, {"s3cret\n", "s3cret"}, {"s3cret\r\n", "s3cret"}, {"s3cret\r", "s3cret"}, {"s3cret\n\n", "s3cret"},
		{" s3 cret \r\n", " s3 cret "}, {"\ns3cret\n", "\ns3cret"}, {"s3\r\ncret\r\n", "s3\r\ncret"}, {"\t\n", "\t"}, {"", ""}, {"\r\n", ""},
		{strings.Repeat("x", 64<<10), strings.Repeat("x", 64<<10)},
	} {
		text, want := c[0], c[1]
		path := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := (Secret{File: path}).Text(); err != nil || got != want {
			t.Errorf("%.20q: %.20q, %v, want %.20q", text, got, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, make([]byte, 64<<10+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Secret{File: path}).Text(); err == nil || err.Error() != path+" is longer than 64 KiB: want a file with the text alone" {
		t.Errorf("a long file: %v", err)
	}
	link := path + "-link"
	if err := os.Symlink(os.DevNull, link); err != nil {
		t.Fatal(err)
	}
	if _, err := (Secret{File: link}).Text(); err == nil || err.Error() != link+" is a device: want a regular file" {
		t.Errorf("a device: %v", err)
	}
	if _, err := (Secret{File: path + "x"}).Text(); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestAPasswordInTheEnvironment(t *testing.T) {
	t.Setenv("A_PASSWORD", "s3cret\n")
	if got, err := (Secret{Env: "A_PASSWORD"}).Text(); err != nil || got != "s3cret\n" {
		t.Errorf("%q, %v, want the value as it is", got, err)
	}
	t.Setenv("A_PASSWORD", "")
	if got, err := (Secret{Env: "A_PASSWORD"}).Text(); err != nil || got != "" {
		t.Errorf("an empty variable: %q, %v", got, err)
	}
	if _, err := (Secret{Env: "NO_SUCH_PASSWORD"}).Text(); err == nil || !strings.Contains(err.Error(), "NO_SUCH_PASSWORD is not in the environment") {
		t.Errorf("a variable that is not there: %v", err)
	}
	if got, err := (Secret{Word: " x "}).Text(); err != nil || got != " x " {
		t.Errorf("%q, %v", got, err)
	}
}

// The longest prefix that contains the address decides, wherever it is in its list.
func TestTheLongestPrefixDecides(t *testing.T) {
	prefixes := func(texts ...string) (all []netip.Prefix) {
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	for _, c := range []struct {
		exempt, only, deny []netip.Prefix
		address            string
		want               Listed
	}{
		{prefixes("10.1.2.0/24", "10.0.0.0/8"), nil, prefixes("10.1.0.0/16"), "10.1.2.3", Exempted},
		{prefixes("10.0.0.0/8", "10.1.2.0/24"), nil, prefixes("10.1.0.0/16"), "10.1.2.3", Exempted},
		{prefixes("10.1.0.0/16"), nil, prefixes("10.1.2.0/24", "10.0.0.0/8"), "10.1.2.3", DenyListed},
		{prefixes("10.1.0.0/16"), nil, prefixes("10.0.0.0/8", "10.1.2.0/24"), "10.1.2.3", DenyListed},
		{prefixes("10.1.0.0/16"), nil, prefixes("10.0.0.0/8", "10.1.2.0/24"), "10.1.3.3", Exempted},
		{prefixes("10.1.2.3/32", "10.1.2.0/24"), nil, prefixes("10.1.2.0/31", "10.1.2.2/31"), "10.1.2.3", Exempted},
		{prefixes("0.0.0.0/0"), nil, nil, "192.0.2.1", Exempted},
		{nil, nil, prefixes("0.0.0.0/0"), "192.0.2.1", DenyListed},
		{prefixes("0.0.0.0/0"), nil, prefixes("192.0.2.0/24"), "192.0.2.1", DenyListed},
		{prefixes("::/0"), nil, prefixes("0.0.0.0/0"), "192.0.2.1", DenyListed},
		{prefixes("2001:db8::/32"), nil, prefixes("2001:db8:1::/48", "2001::/16"), "2001:db8:1::1", DenyListed},
		{prefixes("10.0.0.0/8"), nil, prefixes("10.1.0.0/16"), "192.0.2.1", Unlisted},
		{nil, prefixes("10.0.0.0/8", "192.0.2.0/24"), nil, "192.0.2.1", Unlisted},
		{nil, prefixes("10.0.0.0/8"), nil, "192.0.2.1", DenyListed},
		{nil, prefixes("0.0.0.0/0"), nil, "192.0.2.1", Unlisted},
		{nil, prefixes("10.0.0.0/8"), nil, "2001:db8::1", DenyListed},
		{nil, prefixes("10.0.0.0/8"), prefixes("10.1.0.0/16"), "10.1.2.3", DenyListed},
		{nil, prefixes("10.1.0.0/16"), prefixes("10.0.0.0/8"), "10.1.2.3", DenyListed},
		{prefixes("192.0.2.1/32"), prefixes("10.0.0.0/8"), nil, "192.0.2.1", DenyListed},
		{prefixes("10.1.2.0/24"), prefixes("10.0.0.0/8"), prefixes("10.1.0.0/16"), "10.1.2.3", Exempted},
		{prefixes("0.0.0.0/0"), nil, nil, "", Unlisted},
		{nil, nil, prefixes("0.0.0.0/0"), "", Unlisted},
		{nil, prefixes("0.0.0.0/0", "::/0"), nil, "", DenyListed},
	} {
		var address netip.Addr // a request may have none that can be read
		if c.address != "" {
			address = netip.MustParseAddr(c.address)
		}
		p := &Policy{Exempt: c.exempt, Only: c.only, Deny: c.deny}
		if got := p.Lists(address); got != c.want {
			t.Errorf("%q, exempt %v, only %v, deny %v: %d, want %d", c.address, c.exempt, c.only, c.deny, got, c.want)
		}
	}
}

// Whatever the lists are, their order changes nothing, and what is listed is what
// the longest of all prefixes says.
func TestTheOrderOfAListChangesNothing(t *testing.T) {
	seed := rand.Uint64() //nolint:gosec // it is a test's
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is a test's
	for range 500 {
		lists, longest, listName := [2][]netip.Prefix{}, -1, -1
		address := netip.AddrFrom4([4]byte{10, byte(r.IntN(4)), byte(r.IntN(4)), byte(r.IntN(4))})
		for range r.IntN(8) {
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(r.IntN(4)), byte(r.IntN(4)), byte(r.IntN(4))}), r.IntN(33)).Masked()
			if which := r.IntN(2); !slices.Contains(lists[1-which], p) {
				lists[which] = append(lists[which], p)
				if p.Contains(address) && p.Bits() > longest {
					longest, listName = p.Bits(), which
				}
			}
		}
		for range 3 {
			for _, list := range lists {
				r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			}
			want := map[int]Listed{-1: Unlisted, 0: Exempted, 1: DenyListed}[listName]
			if got := (&Policy{Exempt: lists[0], Deny: lists[1]}).Lists(address); got != want {
				t.Fatal(fmt.Sprint(address, " exempt ", lists[0], " deny ", lists[1], ": ", got, ", want ", want))
			}
		}
	}
}

// Limits mean the same in a file and in Go, whatever is left out.
func TestLimitsMeanTheSameInAFileAndInGo(t *testing.T) {
	for text, fields := range map[string]string{
		"5/m":                        "{quota: 5, window: m}",
		"3/10s fixed_window":         "{maximumRequests: 3, timePeriodInMilliseconds: 10000}",
		"100 per minute, 1 / S":      "[{quota: 100, window: Minute}, 1 per 1 second]",
		"9/month UTC":                "{quota: 9, window: Month}",
		"9/week UTC, 9/d":            "[{quota: 9, window: w, zone: UTC, algorithm: fixed_window}, {quota: 9, window: day}]",
		"9/day UTC, 9/month UTC":     "[{zone: UTC, quota: 9, window: 24h}, {zone: UTC, window: month, quota: 9}]",
		"9/31d":                      "{quota: 9, window: 31d}",
		"10/s aligned":               "{quota: 10, window: 1s, aligned: true}",
		"5/m fixed_window name=a":    "{quota: 5, window: 1m, algorithm: fixed_window, name: a}",
		"10/s token_bucket burst=20": "{quota: 10, window: 1s, algorithm: token_bucket, burst: 20}",
		"10/s, 100/h sliding_log":    "[{quota: 10, window: 1s}, 100/h sliding_log]",
		"5/m bucketed_window precision=1s, 9/d": "[{quota: 5, window: 1m, algorithm: bucketed_window, precision: 1s}, " +
			"{quota: 9, window: 1d}]",
	} {
		want, err := core.ParseLimits(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, written := range []string{"'" + text + "'", fields} {
			got := readFine(t, "policies: [{name: a, limits: "+written+"}]").Policies[0].Limits
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v, in Go %s is %v", written, got, text, want)
			}
		}
	}
}

// Every difference between two store sections makes another identity, so that a
// reload opens another store. Equal sections have equal identities.
func TestIdentities(t *testing.T) {
	stores := map[string]string{}
	for _, text := range []string{
		"redis: {address: 'a:1'}", "redis: {address: 'b:1'}", "memcached: {servers: ['a:1']}", "memcached: {servers: ['b:1']}",
		"synced: {redis: {address: 'a:1'}}", "synced: {redis: {address: 'b:1'}}", "synced: {redis: {address: 'a:1'}, interval: 1s}",
		"synced: {postgres: {address: 'a:1', user: u, database: d}}", "synced: {postgres: {address: 'b:1', user: u, database: d}}",
		"synced: {postgres: {address: 'a:1', user: v, database: d}}", "synced: {postgres: {address: 'a:1', user: u, database: e}}",
		"synced: {postgres: {address: 'a:1', user: u, password: p, database: d}}", "synced: {postgres: {address: 'a:1', user: u, database: d, timeout: 2s}}",
	} {
		read := func() string {
			return readFine(t, "store: {"+text+"}\npolicies: [{name: a, limits: 1/s aligned}]").Store.Identity()
		}
		id := read()
		if id == "" || id != read() {
			t.Errorf("%s: the identities %q and %q", text, id, read())
		}
		if other := stores[id]; other != "" {
			t.Errorf("%s has the identity of %s", text, other)
		}
		stores[id] = text
	}
}

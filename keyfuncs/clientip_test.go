package keyfuncs_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestWithoutOptionsTheKeyIsThePeersAddress(t *testing.T) {
	for _, row := range []struct{ name, remote, want string }{
		{"IPv4", "192.0.2.1:1234", "192.0.2.1"},
		{"IPv6 is cut to /64", "[2001:db8:1:2:3:4:5:6]:1234", "2001:db8:1:2::/64"},
		{"IPv6 with a dotted tail", "[2001:db8:1:2::1.2.3.4]:1", "2001:db8:1:2::/64"},
		{"mapped IPv4", "[::ffff:192.0.2.1]:1234", "192.0.2.1"},
		{"NAT64", "[64:ff9b::192.0.2.1]:1234", "192.0.2.1"}, {"a zone", "[fe80::1%eth0]:1", "fe80::1"},
		{"another address of the link", "[fe80::2%eth0]:1", "fe80::2"}, {"no port", "192.0.2.1", "192.0.2.1"},
		{"brackets and no port", "[2001:db8::1]", "2001:db8::/64"}, {"empty", "", "unknown"},
		{"a Unix socket", "@", "unknown"}, {"a Unix socket with a name", "/run/app.sock", "unknown"},
		{"no address", "pipe:1", "unknown"},
		{"no number for a port", "192.0.2.1:x", "unknown"}, {"a port that is too large", "192.0.2.1:65536", "unknown"}, {"a name with a dot", "app.sock:1", "unknown"},
	} {
		r := &request{remote: row.remote, header: headers("X-Forwarded-For", "6.6.6.6", "Forwarded", "for=6.6.6.6", "X-Real-IP", "6.6.6.6")}
		if got := keyOf(t, keyfuncs.ClientIP(), r); got != row.want {
			t.Errorf("%s: key %q, want %q", row.name, got, row.want)
		}
	}
}

// fellBack returns the key of a request, and why it is not the client's address; "" if it is.
func fellBack(t *testing.T, r *request, opts ...keyfuncs.ClientIPOption) (key, why string) {
	t.Helper()
	var all []string
	key = keyOf(t, keyfuncs.ClientIP(append(opts, keyfuncs.OnFallback(func(of core.Request, err error) {
		if of != r {
			t.Error("told of another request")
		}
		all = append(all, err.Error())
	}))...), r)
	if len(all) > 1 {
		t.Errorf("told of %d fallbacks", len(all))
	}
	return key, strings.Join(all, "; ")
}

func TestAddressesBehindProxies(t *testing.T) {
	long := strings.Repeat("6.6.6.6, ", 1000)
	for _, row := range []struct {
		name, header string
		lines        []string
		want         string
		fallsBack    bool
	}{
		{"the client prepends", "X-Forwarded-For", []string{"6.6.6.6, 203.0.113.9"}, "203.0.113.9", false},
		{"two trusted hops", "X-Forwarded-For", []string{"6.6.6.6, 203.0.113.9, 10.0.0.7"}, "203.0.113.9", false},
		{"all hops trusted", "X-Forwarded-For", []string{"10.0.0.8, 10.0.0.7"}, "10.0.0.8", false},
		{"two lines", "X-Forwarded-For", []string{"6.6.6.6", "203.0.113.9, 10.0.0.7"}, "203.0.113.9", false},
		{"a trusted line, and the client in the one before", "X-Forwarded-For", []string{"203.0.113.9", "10.0.0.7"}, "203.0.113.9", false},
		{"nonsense", "X-Forwarded-For", []string{"nonsense"}, "10.0.0.1", true},
		{"nonsense behind a trusted hop", "X-Forwarded-For", []string{"6.6.6.6, nonsense, 10.0.0.7"}, "10.0.0.7", true},
		{"a port", "X-Forwarded-For", []string{"203.0.113.9:56789"}, "203.0.113.9", false},
		{"brackets and a port", "X-Forwarded-For", []string{"[2001:db8::1]:80"}, "2001:db8::/64", false},
		{"a zone", "X-Forwarded-For", []string{"fe80::1%eth0"}, "fe80::1", false},
		{"something for a port", "X-Forwarded-For", []string{"[2001:db8::1]x443"}, "10.0.0.1", true},
		{"a port that is none", "X-Forwarded-For", []string{"203.0.113.9:x"}, "10.0.0.1", true},
		{"an empty port", "X-Forwarded-For", []string{"203.0.113.9:"}, "10.0.0.1", true},
		{"a port of six digits", "X-Forwarded-For", []string{"203.0.113.9:000080"}, "10.0.0.1", true},
		{"brackets around IPv4", "X-Forwarded-For", []string{"[203.0.113.9]"}, "10.0.0.1", true},
		{"an open bracket", "X-Forwarded-For", []string{"[2001:db8::1"}, "10.0.0.1", true},
		{"empty parts", "X-Forwarded-For", []string{",, 203.0.113.9 ,\t,"}, "203.0.113.9", false},
		{"nothing but empty parts", "X-Forwarded-For", []string{" , ,"}, "10.0.0.1", true},
		{"no header", "X-Forwarded-For", nil, "10.0.0.1", true},
		{"long, the client last", "X-Forwarded-For", []string{long + "203.0.113.9"}, "203.0.113.9", false},
		{"a megabyte of commas", "X-Forwarded-For", []string{strings.Repeat(",", 1<<20)}, "10.0.0.1", true},

		{"for", "Forwarded", []string{"for=203.0.113.9"}, "203.0.113.9", false},
		{"quotes, brackets, port", "Forwarded", []string{`For="[2001:db8::1]:443"`}, "2001:db8::/64", false},
		{"a comma first", "Forwarded", []string{",for=203.0.113.9"}, "203.0.113.9", false},
		{"other parameters", "Forwarded", []string{"proto=https;for=203.0.113.9;by=10.0.0.1"}, "203.0.113.9", false},
		{"an obfuscated port", "Forwarded", []string{`for="203.0.113.9:_p"`}, "203.0.113.9", false},
		{"an obfuscated port without a name", "Forwarded", []string{`for="203.0.113.9:_"`}, "10.0.0.1", true},
		{"an obfuscated port with a space", "Forwarded", []string{`for="203.0.113.9:_p p"`}, "10.0.0.1", true},
		{"a parameter without a name", "Forwarded", []string{"=x;for=203.0.113.9"}, "10.0.0.1", true},
		{"a parameter without a value", "Forwarded", []string{"x=;for=203.0.113.9"}, "10.0.0.1", true},
		{"a colon for the sign", "Forwarded", []string{"for:203.0.113.9"}, "10.0.0.1", true},
		{"escapes", "Forwarded", []string{`for="203\.0.113.9"`}, "10.0.0.1", true},
		{"unknown", "Forwarded", []string{"for=unknown"}, "10.0.0.1", true},
		{"obfuscated", "Forwarded", []string{"for=_hidden"}, "10.0.0.1", true},
		{"for twice", "Forwarded", []string{"for=6.6.6.6;for=203.0.113.9"}, "10.0.0.1", true},
		{"a parameter twice", "Forwarded", []string{"for=6.6.6.6;by=a;By=b"}, "10.0.0.1", true},
		{"a comma in quotes", "Forwarded", []string{`for=203.0.113.9;x="a,b", for=10.0.0.7`}, "203.0.113.9", false},
		{"an open quote of the client's", "Forwarded", []string{`for="6.6.6.6, for=203.0.113.9`}, "203.0.113.9", false},
		{"an escaped quote of the client's", "Forwarded", []string{`for="\", for=203.0.113.9`}, "203.0.113.9", false},
		{"an escaped backslash at the end of quotes", "Forwarded", []string{`for=203.0.113.9;x="a,b\\"`}, "203.0.113.9", false},
		{"an escaped quote at the end of quotes", "Forwarded", []string{`for=203.0.113.9;x="a,b\\\""`}, "203.0.113.9", false},
		{"something behind quotes", "Forwarded", []string{`for="203.0.113.9"x=1`}, "10.0.0.1", true},
		{"IPv6 without brackets", "Forwarded", []string{`for="2001:db8::1"`}, "10.0.0.1", true},
		{"white space within", "Forwarded", []string{"for = 203.0.113.9"}, "10.0.0.1", true},
		{"an unquoted port", "Forwarded", []string{"for=203.0.113.9:80"}, "10.0.0.1", true},
		{"no for", "Forwarded", []string{"by=203.0.113.9"}, "10.0.0.1", true},
		{"8 parameters", "Forwarded", []string{"a=1;b=1;c=1;d=1;e=1;f=1;g=1;for=203.0.113.9"}, "203.0.113.9", false},
		{"9 parameters", "Forwarded", []string{"a=1;b=1;c=1;d=1;e=1;f=1;g=1;for=203.0.113.9;h=1"}, "10.0.0.1", true},
		{"empty pairs", "Forwarded", []string{";;for=203.0.113.9;"}, "203.0.113.9", false},

		{"a single address", "X-Real-IP", []string{" \t203.0.113.9\t "}, "203.0.113.9", false},
		{"a single address that is trusted", "CF-Connecting-IP", []string{"10.0.0.9"}, "10.0.0.9", false},
		{"two in one", "X-Real-IP", []string{"6.6.6.6, 203.0.113.9"}, "10.0.0.1", true},
	} {
		r := &request{remote: "10.0.0.1:1", header: http.Header{http.CanonicalHeaderKey(row.header): row.lines}}
		behind := keyfuncs.Behind(row.header, "10.0.0.0/8")
		if got, why := fellBack(t, r, behind); got != row.want || (why != "") != row.fallsBack {
			t.Errorf("%s: %s: key %q, want %q; fallback %q", row.header, row.name, got, row.want, why)
		}
		// The same chain from a peer that is not listed.
		r.remote = "192.0.2.1:1"
		if got, _ := fellBack(t, r, behind); got != "192.0.2.1" {
			t.Errorf("%s: %s: from a stranger: key %q", row.header, row.name, got)
		}
	}
}

func TestTrustedPrefixes(t *testing.T) {
	r := func(remote string) *request {
		return &request{remote: remote, header: headers("X-Real-IP", "203.0.113.9")}
	}
	for _, row := range []struct {
		proxies, remote string
		trusted         bool
	}{
		{"127.0.0.2/32", "127.0.0.2:1", true}, {"127.0.0.2", "127.0.0.2:1", true},
		{"127.0.0.2/32", "[::ffff:127.0.0.2]:1", true}, {"::ffff:127.0.0.2/128", "127.0.0.2:1", true},
		{"127.0.0.2/32", "127.0.0.3:1", false}, {"10.1.2.3/8", "10.9.9.9:1", true},
		{"::ffff:0.0.0.0/97", "9.9.9.9:1", true}, // half of IPv4
		{"fd00::/8", "[fd00::1]:1", true}, {"fe80::/10", "[fe80::1%eth0]:1", true},
		{"192.0.2.1", "[64:ff9b::192.0.2.1]:1", false}, // translated: whoever that is
	} {
		f := keyfuncs.ClientIP(keyfuncs.Behind("X-Real-IP", row.proxies))
		if got := keyOf(t, f, r(row.remote)) == "203.0.113.9"; got != row.trusted {
			t.Errorf("%s trusts %s: %v", row.proxies, row.remote, got)
		}
	}
	f := keyfuncs.ClientIP(keyfuncs.Behind("X-Real-IP", keyfuncs.UnixSocket))
	if got := keyOf(t, f, r("@")); got != "203.0.113.9" {
		t.Errorf("a trusted Unix socket: %q", got)
	}
}

func TestIPv6Prefix(t *testing.T) {
	for bits, want := range map[int]string{32: "2001:db8::/32", 56: "2001:db8:1::/56", 64: "2001:db8:1:2::/64", 128: "2001:db8:1:2:3:4:5:6"} {
		if got := keyOf(t, keyfuncs.ClientIP(keyfuncs.IPv6Prefix(bits)), &request{remote: "[2001:db8:1:2:3:4:5:6]:1"}); got != want {
			t.Errorf("/%d: key %q, want %q", bits, got, want)
		}
	}
}

func TestClientIPErrorsNameTheOptionAndItsValue(t *testing.T) {
	behind := keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8")
	for _, row := range []struct {
		opts []keyfuncs.ClientIPOption
		says []string
	}{
		{[]keyfuncs.ClientIPOption{keyfuncs.IPv6Prefix(0)}, []string{"IPv6Prefix", "0", "32 to 128"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.IPv6Prefix(31)}, []string{"31"}},
		{[]keyfuncs.ClientIPOption{nil, keyfuncs.IPv6Prefix(31)}, []string{"an option is nil", "31"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.IPv6Prefix(129)}, []string{"129"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.Behind("X-Real-IP", "10.0.0.0/33", "nonsense")}, []string{"Behind", `"10.0.0.0/33"`, `"nonsense"`}},
		{[]keyfuncs.ClientIPOption{keyfuncs.Behind("X-Real-IP", "::ffff:0:0/95")}, []string{"::ffff:0:0/95"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.Behind("X-Real-IP", "fe80::1%eth0")}, []string{"fe80::1%eth0"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.Behind("X-Real-IP")}, []string{"X-Real-IP", "no proxies", "10.0.0.0/8"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.Behind("", "10.0.0.0/8")}, []string{"Behind", `""`, "header"}},
		{[]keyfuncs.ClientIPOption{behind, keyfuncs.Behind("Forwarded", "10.0.0.0/8")}, []string{"the only header", "Forwarded", "X-Forwarded-For"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.Behind("X-Forwarded-For ", "10.0.0.0/8")}, []string{"Behind", `"X-Forwarded-For "`}},
		{[]keyfuncs.ClientIPOption{keyfuncs.BehindHops("X-Forwarded-For", 0)}, []string{"BehindHops", "0 hops", "1 to 32"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.BehindHops("X-Forwarded-For", 33)}, []string{"BehindHops", "33 hops"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.BehindHops("X-Real-IP", 1)}, []string{"BehindHops", `"X-Real-IP"`, "X-Forwarded-For or Forwarded"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.BehindHops("", 1)}, []string{"BehindHops", `""`}},
		{[]keyfuncs.ClientIPOption{keyfuncs.BehindHops("Forwarded", 1), keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8")}, []string{"the only header", "Forwarded"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.Behind("X-Forwarded-For", "0.0.0.0/0")}, []string{"Behind", `"0.0.0.0/0"`, "every client", "BehindHops"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8", "::/0")}, []string{`"::/0"`, "every client"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.Behind("X-Forwarded-For", "::ffff:0:0/96")}, []string{`"::ffff:0:0/96"`, "every client"}},
	} {
		_, err := keyfuncs.NewClientIP(row.opts...)
		if !errors.Is(err, core.ErrConfig) {
			t.Errorf("%v: error %v", row.says, err)
			continue
		}
		for _, s := range row.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("error %q does not say %q", err, s)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("ClientIP does not panic")
		}
	}()
	keyfuncs.ClientIP(keyfuncs.Behind("X-Real-IP"))
}

func TestAddressesDoNotAllocate(t *testing.T) {
	proxied := keyfuncs.ClientIP(keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
	peer := keyfuncs.ClientIP()
	defaultLog(t, slog.LevelInfo) // for the line that says that the header is ignored, in the run that is not measured
	huge := &request{remote: "10.0.0.1:1", header: headers("X-Forwarded-For", strings.Repeat("6.6.6.6,", 110_000))}
	dst := make([]byte, 0, 64)
	for name, f := range map[string]func(){
		"the peer":      func() { _, _ = peer(dst, huge) },
		"a huge header": func() { _, _ = proxied(dst, huge) },
	} {
		if got := testing.AllocsPerRun(100, f); got > 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

func FuzzXForwardedFor(f *testing.F) {
	for _, s := range []string{"203.0.113.9", "6.6.6.6, [::1]:80,,", "a, 1.2.3.4:x", strings.Repeat(",", 5000)} {
		f.Add(s, s)
	}
	fuzzHeader(f, "X-Forwarded-For")
}

func FuzzForwarded(f *testing.F) {
	for _, s := range []string{"for=203.0.113.9", `for="[::1]:80";by=_x, for="a\"b"`, `for="`, "for=a;for=b", `\",`} {
		f.Add(s, s)
	}
	fuzzHeader(f, "Forwarded")
}

// fuzzHeader: whatever a client sends, a trusted proxy that appends its address
// decides the key, and so does the peer where nobody is trusted.
func fuzzHeader(f *testing.F, name string) {
	f.Helper()
	key := keyfuncs.ClientIP(keyfuncs.Behind(name, "10.0.0.0/8"))
	appended := "203.0.113.9"
	if name == "Forwarded" {
		appended = "for=203.0.113.9"
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		r := &request{remote: "192.0.2.1:1", header: headers(name, first, name, second)}
		if got := keyOf(t, key, r); got != "192.0.2.1" {
			t.Errorf("from a stranger: key %q", got)
		}
		r.remote = "10.0.0.1:1"
		keyOf(t, key, r) // whatever it is
		r.header = headers(name, first, name, second+", "+appended)
		if got := keyOf(t, key, r); got != "203.0.113.9" {
			t.Errorf("%q: key %q", second, got)
		}
	})
}

func ExampleClientIP() {
	show := func(f core.KeyFunc, remote, forwardedFor string) {
		key, _ := f(nil, &request{remote: remote, header: headers("X-Forwarded-For", forwardedFor)})
		fmt.Printf("%s\n", key)
	}
	// Nobody in front: the peer is the client, whatever it says.
	show(keyfuncs.ClientIP(), "198.51.100.7:4711", "6.6.6.6")
	// Behind proxies of 10.0.0.0/8, which append to X-Forwarded-For.
	behind := keyfuncs.ClientIP(keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
	show(behind, "10.0.0.2:4711", "6.6.6.6, 203.0.113.9")
	show(behind, "10.0.0.2:4711", "2001:db8:1:2:3:4:5:6")
	show(behind, "198.51.100.7:4711", "203.0.113.9")
	// Output:
	// 198.51.100.7
	// 203.0.113.9
	// 2001:db8:1:2::/64
	// 198.51.100.7
}

func TestBehindHops(t *testing.T) {
	for _, row := range []struct {
		name, header string
		hops         int
		lines        []string
		want         string
		why          string // of the fallback
	}{
		{"one proxy, and the client prepends", "X-Forwarded-For", 1, []string{"6.6.6.6, 203.0.113.9"}, "203.0.113.9", ""},
		{"two proxies, and the client prepends", "X-Forwarded-For", 2, []string{"6.6.6.6, 203.0.113.9, 198.51.100.1"}, "203.0.113.9", ""},
		{"two lines", "x-forwarded-for", 2, []string{"6.6.6.6, 203.0.113.9", "198.51.100.1"}, "203.0.113.9", ""},
		{"Forwarded", "Forwarded", 2, []string{"for=6.6.6.6, for=203.0.113.9;proto=https, for=198.51.100.1"}, "203.0.113.9", ""},
		{"private addresses are hops like others", "X-Forwarded-For", 1, []string{"203.0.113.9, 10.0.0.7"}, "10.0.0.7", ""},
		{"fewer addresses than proxies", "X-Forwarded-For", 2, []string{"6.6.6.6"}, "192.0.2.1", "fewer addresses"},
		{"no header", "X-Forwarded-For", 1, nil, "192.0.2.1", "missing"},
		{"an empty header", "X-Forwarded-For", 1, []string{" , "}, "192.0.2.1", "missing"},
		{"the client's part is no address", "X-Forwarded-For", 2, []string{"6.6.6.6, nonsense, 198.51.100.1"}, "198.51.100.1", "no address"},
		{"nonsense that is not read", "X-Forwarded-For", 1, []string{"nonsense, 203.0.113.9"}, "203.0.113.9", ""},
		{"32 proxies", "X-Forwarded-For", 32, []string{"6.6.6.6, 203.0.113.9" + strings.Repeat(", 10.0.0.1", 31)}, "203.0.113.9", ""},
	} {
		r := &request{remote: "192.0.2.1:1234", header: http.Header{http.CanonicalHeaderKey(row.header): row.lines}}
		got, why := fellBack(t, r, keyfuncs.BehindHops(row.header, row.hops))
		if got != row.want || (why != "") != (row.why != "") || !strings.Contains(why, row.why) {
			t.Errorf("%s: key %q, want %q; fallback %q, want %q", row.name, got, row.want, why, row.why)
		}
	}
}

func ExampleBehindHops() {
	ip := keyfuncs.ClientIP(keyfuncs.BehindHops("X-Forwarded-For", 2))
	show(ip, &request{remote: "10.1.2.3:80", header: headers("X-Forwarded-For", "203.0.113.9, 198.51.100.1")})
	// Output: "203.0.113.9" <nil>
}

func TestOnFallbackIsToldWhyTheKeyIsNotTheClientsAddress(t *testing.T) {
	const proxy = "10.0.0.1:1"
	xff := []keyfuncs.ClientIPOption{keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8")}
	realIP := []keyfuncs.ClientIPOption{keyfuncs.Behind("X-Real-IP", "10.0.0.0/8")}
	unix := []keyfuncs.ClientIPOption{keyfuncs.Behind("X-Real-IP", keyfuncs.UnixSocket)}
	for _, row := range []struct {
		name, remote string
		behind       []keyfuncs.ClientIPOption
		header       []string
		key, why     string // why "": OnFallback is not called
	}{
		{"the peer", "192.0.2.1:1", nil, nil, "192.0.2.1", ""},
		{"a Unix socket", "@", nil, nil, "unknown", "no IP address"},
		{"a Unix socket, and proxies with addresses", "@", realIP, []string{"X-Real-IP", "203.0.113.9"}, "unknown", "no IP address"},
		{"a trusted Unix socket", "@", unix, []string{"X-Real-IP", "203.0.113.9"}, "203.0.113.9", ""},
		{"a trusted Unix socket without the header", "@", unix, nil, "unknown", "missing"},
		{"no address", proxy, realIP, []string{"X-Real-IP", "nonsense"}, "10.0.0.1", "no address"},
		{"two lines", proxy, realIP, []string{"X-Real-IP", "203.0.113.8", "X-Real-IP", "203.0.113.9"}, "10.0.0.1", "two lines"},
		{"33 hops", proxy, xff, []string{"X-Forwarded-For", "203.0.113.9" + strings.Repeat(",10.0.0.2", 32)}, "10.0.0.2", "32 hops or 4 KiB"},
		{"5 KiB", proxy, xff, []string{"X-Forwarded-For", strings.Repeat(" ", 5<<10) + ",10.0.0.2"}, "10.0.0.2", "32 hops or 4 KiB"},
	} {
		got, why := fellBack(t, &request{remote: row.remote, header: headers(row.header...)}, row.behind...)
		if got != row.key || (why != "") != (row.why != "") || !strings.Contains(why, row.why) {
			t.Errorf("%s: key %q, want %q; told %q, want %q", row.name, got, row.key, why, row.why)
		}
	}
}

// The walk over a header ends after 32 hops and after 4 KiB.
func TestAHeaderIsReadUpTo32HopsAnd4KiB(t *testing.T) {
	for name, row := range map[string]struct{ hop, client, header string }{
		"X-Forwarded-For": {"10.0.0.1", "203.0.113.9", "X-Forwarded-For"},
		"Forwarded":       {"for=10.0.0.1", "for=203.0.113.9", "Forwarded"},
	} {
		f := keyfuncs.ClientIP(keyfuncs.Behind(row.header, "10.0.0.0/8"))
		walk := func(what, want string, lines ...string) {
			t.Helper()
			r := &request{remote: "10.0.0.99:1", header: http.Header{http.CanonicalHeaderKey(row.header): lines}}
			check(t, name+": "+what, f, r, want)
		}
		hops := func(n int) string { return strings.Repeat(","+row.hop, n) }
		walk("32 hops", "203.0.113.9", row.client+hops(31))
		walk("33 hops", "10.0.0.1", row.client+hops(32))
		walk("33 hops in two lines", "10.0.0.1", row.client+hops(10), hops(22)[1:])
		// The client's address is the first of the bytes that are looked at.
		pad := func(n int) string { return strings.Repeat(" ", n-len(row.client)-len(hops(1))) }
		walk("4096 bytes", "203.0.113.9", row.client+pad(4096)+hops(1))
		walk("4096 bytes behind another hop", "10.0.0.1", row.hop+","+row.client+pad(4096)+hops(1))
		walk("4097 bytes", "10.0.0.1", " "+row.client+pad(4096)+hops(1))
		walk("4097 bytes in three lines", "10.0.0.1", " "+row.client+strings.Repeat(" ", 100-len(row.client)), row.hop, strings.Repeat(" ", 3996-2*len(row.hop))+row.hop)
	}
}

func ExampleNewClientIP() {
	_, err := keyfuncs.NewClientIP(keyfuncs.Behind("X-Real-IP", "10.0.0.0/8", "nonsense"))
	fmt.Println(err)
	// Output: floodgate: configuration: Behind: "nonsense": must be a proxy's address, a prefix such as 10.0.0.0/8, or "unix"
}

func ExampleBehind() {
	ip := keyfuncs.ClientIP(keyfuncs.Behind("X-Real-IP", "10.0.0.0/8", "fd00::/8"))
	show(ip, &request{remote: "10.1.2.3:80", header: headers("X-Real-IP", "203.0.113.9")})
	// Output: "203.0.113.9" <nil>
}

func ExampleIPv6Prefix() {
	show(keyfuncs.ClientIP(keyfuncs.IPv6Prefix(56)), &request{remote: "[2001:db8:1:2::1]:80"})
	// Output: "2001:db8:1::/56" <nil>
}

func ExampleBehind_unixSocket() {
	ip := keyfuncs.ClientIP(keyfuncs.Behind("X-Real-IP", keyfuncs.UnixSocket))
	show(ip, &request{remote: "@", header: headers("X-Real-IP", "203.0.113.9")})
	// Output: "203.0.113.9" <nil>
}

func ExampleOnFallback() {
	warn := func(_ core.Request, why error) { fmt.Println(why) }
	ip := keyfuncs.ClientIP(keyfuncs.Behind("X-Real-IP", "10.0.0.0/8"), keyfuncs.OnFallback(warn))
	show(ip, &request{remote: "10.1.2.3:80"})
	// Output:
	// keyfuncs: the trusted proxy's header is missing
	// "10.1.2.3" <nil>
}

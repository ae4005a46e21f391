package keyfuncs_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/keyfuncs"
)

// After these, no headers are read.
func TestHeadersOfTheFirst64RequestsAreRead(t *testing.T) {
	for _, quiet := range []int{0, 1, 63, 64} {
		log := defaultLog(t, slog.LevelInfo)
		f, asked := keyfuncs.ClientIP(), 0
		r := &looked{request{remote: "10.0.0.1:1", header: headers()}, &asked}
		for range quiet {
			keyOf(t, f, r)
		}
		r.header.Set("X-Forwarded-For", "6.6.6.6")
		for range 65 {
			keyOf(t, f, r)
		}
		if told := strings.Count(log.String(), "header=X-Forwarded-For"); told != min(1, 64-quiet) || strings.Count(log.String(), "level=WARN") != told || strings.Contains(log.String(), "6.6.6.6") {
			t.Errorf("after %d requests without a header: logged %s", quiet, log)
		}
		before := asked
		if keyOf(t, f, r); asked != before {
			t.Errorf("after %d requests without a header: headers are still read", quiet)
		}
	}
}

// With Behind, the header of Behind is the only one that is looked at.
func TestClientIPLogsAnUnlistedProxyThatWritesTheHeaderOfBehind(t *testing.T) {
	for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "X-Odd"} {
		log := defaultLog(t, slog.LevelInfo)
		f := keyfuncs.ClientIP(keyfuncs.Behind(name, "10.0.0.0/8"))
		stranger := &request{remote: "192.0.2.1:1", header: headers("Cf-Connecting-Ip", "6.6.6.6")}
		if keyOf(t, f, stranger); log.Len() > 0 {
			t.Errorf("%s: another header is logged: %s", name, log)
		}
		stranger.header.Set(name, "6.6.6.6")
		keyOf(t, f, &request{remote: "10.0.0.1:1", header: stranger.header})
		if log.Len() > 0 {
			t.Errorf("%s: the header of a listed proxy is logged: %s", name, log)
		}
		if keyOf(t, f, stranger); strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "header="+name) {
			t.Errorf("%s: logged: %s", name, log)
		}
	}
}

// Whatever the address of the peer is, and whichever header it writes, the header is logged.
func TestClientIPLogsAnUnlistedProxyWithAnyAddress(t *testing.T) {
	for _, name := range []string{
		"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Cf-Connecting-Ip", "True-Client-Ip", "Fastly-Client-Ip",
		"Fly-Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Azure-Clientip", "X-Appengine-Remote-Addr",
	} {
		for _, peer := range []string{"192.0.2.1:1", "[2001:db8::1]:1", "192.0.2.1", "@"} {
			log := defaultLog(t, slog.LevelInfo)
			keyOf(t, keyfuncs.ClientIP(), &request{remote: peer, header: headers(name, "6.6.6.6")})
			if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), name) && strings.Contains(peer, ":1") {
				t.Errorf("%s of %s: logged: %s", name, peer, log)
			}
		}
	}
}

// A socket's address has a port. One without has been written by a middleware.
func TestClientIPLogsAnAddressWithoutAPort(t *testing.T) {
	for remote, want := range map[string]string{
		"6.6.6.6": "RealIP", "2001:db8::1": "RealIP", "[2001:db8::1]": "RealIP",
		"6.6.6.6:1": "ignores", "[2001:db8::1]:1": "ignores", "@": "ignores", "": "ignores",
	} {
		log, f := defaultLog(t, slog.LevelInfo), keyfuncs.ClientIP()
		for range 3 {
			keyOf(t, f, &request{remote: remote, header: headers("X-Real-Ip", "6.6.6.6")})
		}
		if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), want) || !strings.Contains(log.String(), "level=WARN msg=\"keyfuncs: ClientIP ") || strings.Contains(log.String(), "6.6.6.6") {
			t.Errorf("%q: logged %s, want %s", remote, log, want)
		}
	}
}

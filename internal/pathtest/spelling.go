package pathtest

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// Recorded are targets that reached a handler around its policy, in one router
// or another, and some like them.
var Recorded = []string{
	"/items/7", "/items/7/parts", "/leaf/7", "/leaf/7/x", "/a/1/b", "/login", "/api/x", "/api", "/api/", "/files/big.bin", "/files/small.bin", "/my%20file/x", "/my+file/x", "/none",
	"/api/%2e%2e/x", "/api/../x", "/api/..", "/api/%2e%2e", "/api/.%2E/x", "/items/%2e", "/items/%2e%2e", "/items/..", "/a//b", "/a/./b", "/a/../b", "/a/%2e/b",
	"/items/7%2f#f", "/items/7%2f", "/items/%2f", "/items/7%2F..%2F8", "/leaf/7%2fx", "/leaf/7/..", "/items/7/", "//items/7", "/./items/7", "/items//7", "/%69tems/7", "/ITEMS/7", "/LoGiN",
	"/files/%2e%2e/big.bin", "/files/../big.bin", "/files/x/%2e%2e/%2e%2e/big.bin", "/files/%2562ig.bin", "/files//big.bin", "/files/./big.bin", "/files/%62ig.bin", "/files/../12345/big.bin", "/files./small.bin", "/files./big.bin", "/files%2e/small.bin", "/files../small.bin", "/files/api%2F.%2e/big.bin", "/files.%2fsmall.bin", "/filesbig.bin", "/filessmall.bin", "/FILESbig.bin", "/files%62ig.bin", "/files./big.bin", "/files;big.bin",
	"/login/", "//login", "/login//", "/login#f", "/login%23", "/login?x=/health", "/health/../login", "/log%69n", "/log%2569n", "http://h/login", "http://h//login", "http://h/api/../x", "http://h",
	"/items/%252e", "/items/7%252f8", "/a/%2f/b", "/a/x%2fy/b", "/items/7;x=1", "/items/7%00", "/items/\\..\\x", "/a//b/", "/api//", "/api///x", "/%61pi/%2e%2e/%2e%2e/x", "*", "/", "//", "/..", "/.",
}

var bases = []string{"/items/7", "/items/7/parts", "/leaf/7", "/a/1/b", "/login", "/api/x/y", "/api", "/files/big.bin", "/files/small.bin", "/my%20file/x"}

// Random makes a target out of a path that a handler has.
func Random(r *rand.Rand) string {
	target := bases[r.IntN(len(bases))]
	for range r.IntN(4) {
		target = change(r, target)
	}
	switch r.IntN(12) {
	case 0:
		target += "?x=/items/1"
	case 1:
		target += "#f"
	case 2:
		target = "http://h" + target
	}
	return target
}

func change(r *rand.Rand, s string) string {
	at := r.IntN(len(s))
	slash := max(0, strings.LastIndexByte(s, '/'))
	if i := strings.IndexByte(s[at:], '/'); i >= 0 {
		slash = at + i
	}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	dots := pick(".", "..", "%2e", "%2E%2e", ".%2e", "%252e%252e", "...", "")
	switch r.IntN(9) {
	case 0, 1: // another segment
		return s[:slash] + "/" + dots + s[slash:]
	case 2: // another segment and a way back
		return s[:slash] + "/" + pick("x", "files", "12345", "api") + "/" + dots + s[slash:]
	case 3: // an escape
		return s[:at] + fmt.Sprintf("%%%02x", s[at]) + s[at+1:]
	case 4: // twice
		return s[:at] + fmt.Sprintf("%%25%02X", s[at]) + s[at+1:]
	case 5:
		return s[:slash] + pick("%2f", "%2F", "%252f", "\\", "%5c", "//", "/%2f") + s[slash+1:]
	case 6:
		return s + pick("/", "//", "/.", "/..", "%2f", "/%2e", "/x", "%00", "+", ";a", "%20", "/*", "%", "%zz", "%2")
	case 7:
		return s[:at] + strings.ToUpper(s[at:])
	default:
		return s[:at] + pick("+", "%2b", "%20", ".", "é", "%c3%a9", "\xff", "#", "^", "|", "{", "\"") + s[at:]
	}
}

var plain = regexp.MustCompile(`^(/[a-z0-9]+)+$|^/files/[a-z]+\.bin$`)

// isPlain says that every router reads the target alike.
func isPlain(target string) bool { return plain.MatchString(target) }

// sendable says that a target can stand in a request line.
func sendable(target string) bool {
	return target != "" && len(target) < 2000 && !strings.ContainsAny(target, " \r\n\t\x00")
}

package rpc

import (
	"slices"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// The names that belong to the transport and to the protocols, and the beginnings of such
// names. A hook that was written for HTTP may set one of them.
var (
	reserved   = []string{"transfer-encoding", "te", "connection", "keep-alive", "upgrade", "host", "date", "user-agent"}
	reservedAt = []string{"content-", "connect-", "grpc-", "trailer"}
)

// allowedIn returns the lines that can be metadata of a response: a name in the letters
// that gRPC allows and that is not reserved, and a value in printable ASCII. gRPC would
// deny all metadata because of one line.
func allowedIn(lines []core.Header) []core.Header {
	var allowed []core.Header
	for _, line := range lines {
		if nameAllowed(strings.ToLower(line.Name)) && printable(line.Value) {
			allowed = append(allowed, line)
		}
	}
	return allowed
}

func nameAllowed(name string) bool {
	begins := func(with string) bool { return strings.HasPrefix(name, with) }
	if slices.Contains(reserved, name) || slices.ContainsFunc(reservedAt, begins) {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return name != "" && !strings.HasSuffix(name, "-bin")
}

func printable(value string) bool {
	for i := range len(value) {
		if value[i] < ' ' || value[i] > '~' {
			return false
		}
	}
	return true
}

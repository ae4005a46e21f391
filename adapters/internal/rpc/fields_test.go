package rpc

import (
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// gRPC refuses all metadata of a response because of one line that it does not allow.
func TestLinesThatCanBeMetadata(t *testing.T) {
	for _, name := range []string{"X-Tenant", "x_y", "x.y", "0", "retry-after", "cache-control", "x-bin-x", "binary", "contents", "the-trailer", "X-Grpc-Status", "tea", "az09"} {
		if len(allowedIn([]core.Header{{Name: name, Value: "v"}})) != 1 {
			t.Errorf("%s is left out", name)
		}
	}
	for _, name := range []string{
		"", "X Tenant", "x:y", ":path", "é", "x/y", "x\x00", "x\n", "x`", "x{", "x@", "x[",
		"Transfer-Encoding", "TE", "Connection", "Keep-Alive", "Upgrade", "Host", "Date", "User-Agent",
		"Content-Type", "Content-Length", "Connect-Timeout-Ms", "Grpc-Status", "grpc-message", "Trailer", "trailer-x", "Trailers", "X-Token-Bin", "x-bin",
	} {
		if len(allowedIn([]core.Header{{Name: name, Value: "v"}})) != 0 {
			t.Errorf("%q is a name of metadata", name)
		}
	}
	for _, value := range []string{"", " ", "~", "v w", "a,b"} {
		if len(allowedIn([]core.Header{{Name: "x", Value: value}})) != 1 {
			t.Errorf("the value %q is left out", value)
		}
	}
	for _, value := range []string{"\n", "a\r\nb", "\x00", "\t", "\x1f", "\x7f", "é", "\xff"} {
		if len(allowedIn([]core.Header{{Name: "x", Value: value}})) != 0 {
			t.Errorf("%q is a value of metadata", value)
		}
	}
}

func TestLinesKeepTheirOrder(t *testing.T) {
	got := allowedIn([]core.Header{{Name: "B", Value: "1"}, {Name: "Date", Value: "x"}, {Name: "a", Value: "2"}, {Name: "B", Value: "3"}})
	if len(got) != 3 || got[0].Value != "1" || got[1].Value != "2" || got[2].Value != "3" {
		t.Errorf("%v", got)
	}
}

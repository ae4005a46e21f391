package policy

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/requesttest"
)

// No text makes the parser panic, or refuse a file without saying where.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/broken_files.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "\n=== ") {
		_, file, _ := strings.Cut(block, "\n")
		file, _, _ = strings.Cut(file, ">>>\n")
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		store := core.Must(core.NewMemory(core.MemoryConfig{}))
		defer store.Close() //nolint:errcheck // it is not used
		s, err := Parse("f", text, WithStore(store), Log(slog.New(slog.NewTextHandler(io.Discard, nil))))
		if err != nil {
			if len(Errors(err)) == 0 {
				t.Errorf("an error without a place: %v", err)
			}
		} else {
			r := httptest.NewRequest(http.MethodPost, "/a/b?x=1", strings.NewReader("a=b"))
			requesttest.See(t, r, func(r core.Request) {
				s.Check(r)
				s.Explain(r)
			})
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

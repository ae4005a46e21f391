package keyfuncs_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// measured is a request that keeps how much of its body is asked for.
type measured struct {
	*request
	asked []int
}

func (r *measured) Body(max int) ([]byte, error) {
	r.asked = append(r.asked, max)
	return r.request.Body(max)
}

// A client must not make the limiter hold a long body in memory.
func TestPostFieldAsksForNoMoreOfABodyThanItNeeds(t *testing.T) {
	for _, row := range []struct {
		name, kind string
		opts       []keyfuncs.PostFieldOption
		want       []int
	}{
		{"a form", formType, nil, []int{keyfuncs.DefaultMaxBody + 1}},
		{"JSON", jsonType, []keyfuncs.PostFieldOption{keyfuncs.MaxBody(100)}, []int{101}},
		{"another type", "application/xml", nil, nil},
		{"another type, strict", "application/xml", []keyfuncs.PostFieldOption{keyfuncs.Strict()}, []int{1}},
		{"JSON, forms only", jsonType, []keyfuncs.PostFieldOption{keyfuncs.FormsOnly()}, nil},
		{"JSON, forms only, strict", jsonType, []keyfuncs.PostFieldOption{keyfuncs.FormsOnly(), keyfuncs.Strict()}, []int{1}},
	} {
		r := &measured{request: &request{header: headers("Content-Type", row.kind), body: strings.Repeat("x", keyfuncs.DefaultMaxBody)}}
		_, _ = keyfuncs.PostField("username", row.opts...)(nil, r)
		if !slices.Equal(r.asked, row.want) {
			t.Errorf("%s: asks for %v bytes, want %v", row.name, r.asked, row.want)
		}
	}
}

func TestABodyThatCannotBeReceivedIsRefused(t *testing.T) {
	failed := errors.New("connection reset")
	for kind, opts := range map[string][]keyfuncs.PostFieldOption{
		formType: nil, jsonType: nil, multipartType: nil, "application/xml": {keyfuncs.Strict()}, formType + "; x=1": {keyfuncs.Strict()},
	} {
		r := &request{header: headers("Content-Type", kind), body: "username=alice", bodyErr: failed}
		if key, err := keyfuncs.PostField("username", opts...)(nil, r); !errors.Is(err, core.ErrBadRequest) || !errors.Is(err, failed) {
			t.Errorf("%s: key %q, error %v", kind, key, err)
		}
		r.bodyErr = core.ErrBodyRead
		if key, err := keyfuncs.PostField("username", opts...)(nil, r); !errors.Is(err, core.ErrBadRequest) || !strings.Contains(err.Error(), "put the limiter first") {
			t.Errorf("%s: a body that was read before: key %q, error %v", kind, key, err)
		}
	}
}

// A member may have the name "".
func TestJSONPathMayEndWithAnEmptyName(t *testing.T) {
	f := keyfuncs.PostField("login", keyfuncs.JSONPath(""))
	check(t, "an empty name", f, &request{header: headers("Content-Type", jsonType), body: `{"":"alice","login":"x"}`}, "alice")
	nested := keyfuncs.PostField("name", keyfuncs.JSONPath("user", "name"))
	check(t, "another member with an empty name", nested, &request{header: headers("Content-Type", jsonType), body: `{"":"x","user":{"":"y","name":"alice"}}`}, "alice")
}

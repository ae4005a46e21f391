package expression

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/requesttest"
)

// posted returns a request with a body.
func posted(contentType string, body io.Reader) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", body)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

// A value of a body is read if a framework would read a body of that type. A body
// that a handler may take for JSON although its type says something else is refused.
func TestWhichBodiesHaveAValue(t *testing.T) {
	const refused = "refused"
	for _, c := range []struct{ text, contentType, body, want string }{
		{`json["a"]`, "application/json", `{"a":"x"}`, "x"},
		{`json["a"]`, "Application/JSON; charset=utf-8", `{"a":"x"}`, "x"},
		{`json["a"]`, "application/problem+json", `{"a":"x"}`, "x"},
		{`json["a"]`, "application/json; nonsense", `{"a":"x"}`, "x"},
		{`json["a"]`, "application/jsonx", `{"a":"x"}`, refused},
		{`json["a"]`, "text/plain", `{"a":"x"}`, refused},
		{`json["a"]`, "", " \t\r\n" + `{"a":"x"}`, refused},
		{`json["a"]`, "text/plain", "\ufeff" + `{"a":"x"}`, refused},
		{`json["a"]`, "text/plain", strings.Repeat(" ", 64) + `{"a":"x"}`, refused},
		{`json["a"]`, "text/plain", strings.Repeat(" ", 63) + `x`, ""},
		{`json["a"]`, "text/plain", "a=x", ""},
		{`json["a"]`, "", "", ""},
		{`form["a"]`, "application/x-www-form-urlencoded", "a=x", "x"},
		{`form["a"]`, " APPLICATION/x-www-form-urlencoded2", "a=x", refused},
		{`form["a"]`, "application/json", `{"a":"x"}`, ""},
	} {
		got, err := evaluate(t, c.text, posted(c.contentType, strings.NewReader(c.body)))
		if c.want == refused {
			if !errors.Is(err, core.ErrBadRequest) {
				t.Errorf("%s of the body %.20q of type %q: %q, %v, want a bad request", c.text, c.body, c.contentType, got, err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%s of the body %.20q of type %q: %q, %v, want %q", c.text, c.body, c.contentType, got, err, c.want)
		}
	}
}

// The value that decides whether a policy applies is certain: a body of another type
// is refused, because a handler may read several types into one variable.
func TestAConditionIsCertainOfABody(t *testing.T) {
	for _, c := range []struct {
		text, contentType, body string
		key, holds              bool // whether there is an answer
	}{
		{`form["a"] == ""`, "application/x-www-form-urlencoded", "b=1", true, true},
		{`form["a"] == ""`, "application/json", `{"a":"x"}`, true, false},
		{`json["a"] == ""`, "application/json", `{"b":"x"}`, true, true},
		{`json["a"] == ""`, "application/x-www-form-urlencoded", "a=x", true, true},
		{`json["a"] == ""`, "application/x-www-form-urlencoded", "a=x&a=y", true, false},
	} {
		e, bad := Compile(c.text, testSources())
		if bad != nil {
			t.Fatal(bad.Problem)
		}
		for certain, want := range map[bool]bool{false: c.key, true: c.holds} {
			requesttest.See(t, posted(c.contentType, strings.NewReader(c.body)), func(r core.Request) {
				var err error
				if certain {
					_, err = e.Holds(r)
				} else {
					_, err = e.Key(nil, r)
				}
				if (err == nil) != want || err != nil && !errors.Is(err, core.ErrBadRequest) {
					t.Errorf("%s of the body %q of type %s, certain %t: %v", c.text, c.body, c.contentType, certain, err)
				}
			})
		}
	}
}

// A body that cannot be read is no empty value.
func TestABodyThatCannotBeRead(t *testing.T) {
	broken := errors.New("the connection broke")
	for _, contentType := range []string{"application/json", "text/plain", "application/x-www-form-urlencoded", ""} {
		for _, text := range []string{`json["a"]`, `form["a"]`} {
			body := io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken))
			if key, err := evaluate(t, text, posted(contentType, body)); err == nil && !(text == `form["a"]` && !mayBeForm(contentType)) {
				t.Errorf("%s of a body of type %q that breaks: %q, no error", text, contentType, key)
			}
			read := posted(contentType, strings.NewReader("{}"))
			_, _ = io.ReadAll(read.Body)
			if key, err := evaluate(t, text, read); text == `json["a"]` && !errors.Is(err, core.ErrBadRequest) && !errors.Is(err, core.ErrBodyRead) {
				t.Errorf("%s of a body of type %q that has been read: %q, %v", text, contentType, key, err)
			}
		}
	}
}

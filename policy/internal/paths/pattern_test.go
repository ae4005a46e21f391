package paths

import (
	"strings"
	"testing"
)

func TestAPatternIsReadOrRefused(t *testing.T) {
	for text, want := range map[string]string{ // what the problem says
		"/a": "", "/a/b": "", "/a/*": "", "/a/**": "", "/a/{id}": "", "/a/{rest...}": "", "/a/:id": "", "/a/:id?": "", "/a/*rest": "", "/a/{$}": "", "/{$}": "", "/{}": "", "/a.b": "",
		"": "does not begin", "a": "does not begin", "*": "does not begin",
		"/a/**/b": "at the end only", "/a/*rest/b": "at the end only", "/a/{rest...}/b": "at the end only", "/a/:id?/b": "at the end only", "/a/{$}/b": "at the end only",
		"/{id:[0-9]+}": "regular expression", "/{id:}": "regular expression",
		"/a+": "plus", "/+": "plus", "/:id+": "plus", "/*a+": "plus",
		"/a:b": "colon", "/a:": "colon", "/:a:b": "colon", "/:": "colon", "/*a:b": "colon",
		"/a?": "? and #", "/a#b": "? and #", "/?a": "? and #", "/:a?b": "? and #", "/:a#": "? and #", "/*a?": "? and #", "/*a#": "? and #",
		"/a*": "whole part", "/*a*": "whole part", "/**a": "whole part", "/***": "whole part", "/:a*": "whole part", "/{a}b": "whole part", "/a{b}": "whole part", "/{a}{b}": "whole part",
		"/{a{b}": "whole part", "/{a": "whole part", "/a}": "whole part", "/*{": "whole part", "/*a}": "whole part",
		"/%" + strings.Repeat("25", maxDecodings) + "41": "too often",
	} {
		p, problem, hint := Parse(text)
		if (problem == "") != (want == "") || !strings.Contains(problem, want) {
			t.Errorf("%s: problem %q, want %q", text, problem, want)
		}
		if problem != "" && hint == "" && want != "" {
			t.Errorf("%s: %q comes without a hint", text, problem)
		}
		if problem == "" && p.String() != text {
			t.Errorf("%s is shown as %s", text, p)
		}
	}
}

// A parameter that may be missing is the only one that matches nothing.
func TestHowManySegmentsAPatternMatches(t *testing.T) {
	for text, want := range map[string]string{ // for each number of segments from 0: y or n
		"/": "ynnn", "/{$}": "ynnn", "/**": "yyyy", "/{rest...}": "yyyy", "/*rest": "yyyy",
		"/*": "nynn", "/{id}": "nynn", "/:id": "nynn", "/:ids": "nynn", "/:id?": "yynn",
		"/x/*": "nnyn", "/x/**": "nyyy", "/x/:id?": "nyyn", "/x/{$}": "nynn", "/*/**": "nyyy",
	} {
		p, problem, _ := Parse(text)
		if problem != "" {
			t.Fatal(text, problem)
		}
		for n, w := range want {
			path := strings.Repeat("/x", n)
			if got := p.matches(readAll(path)); got != (w == 'y') {
				t.Errorf("%s matches %q: %t", text, path, got)
			}
		}
	}
}

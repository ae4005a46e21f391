package expression

import (
	"fmt"
	"regexp"
	"strings"
)

// bareWord is text that is the name of a header or of a parameter rather than an
// expression.
var bareWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)+$`)

// addressWord is what other software calls the client's address.
var addressWord = regexp.MustCompile(`(?i)^(client|remote|source|peer)?[_-]?(ip|addr|address)([_-]?(addr|address))?$`)

// dotted is a value of a request that is written with a dot.
var dotted = regexp.MustCompile(`^(header|query|cookie|form|json)s?\.([A-Za-z0-9_-]+)$`)

// oneCounter is for those who write a text that is the same for all requests.
const oneCounter = "for one counter of all requests, leave the key out"

// mistakes are messages of the compiler, and what to write in place of what they are
// about. The first one that is found counts.
var mistakes = []struct {
	message *regexp.Regexp
	hint    string
}{
	{regexp.MustCompile(`unexpected token Operator\("="\)`), `to compare, write ==, as in method == "POST"`},
	{regexp.MustCompile(`unexpected token Operator\("&"\)`), `write &&, or and`},
	{regexp.MustCompile(`unexpected token Operator\("!"\)`), `to negate, write != or not, as in not (method == "POST")`},
	{regexp.MustCompile(`unknown name (GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)\b`), `text is written in quotes, as in method == "POST"`},
	{regexp.MustCompile(`has no method (startsWith|endsWith|contains|matches)`), `it is an operator: write path startsWith "/api", path endsWith ".js", path contains "x" or path matches "^/a+$"`},
	{regexp.MustCompile(`has no method`), `values have no methods: write lower(path), len(path) or path startsWith "/api"`},
	{regexp.MustCompile(`invalid operation: in \(`), `in looks in a list, as in method in ["GET", "HEAD"]; for addresses write cidr(ip, "10.0.0.0/8")`},
	{regexp.MustCompile(`Identifier\("(AND|And)"\)`), `write and, or &&`},
	{regexp.MustCompile(`Identifier\("(OR|Or)"\)`), `write or, or ||`},
	{regexp.MustCompile(`unexpected token Identifier`), "text is written in quotes; " + oneCounter},
	{regexp.MustCompile(`unrecognized character: U\+201[89CD]`), `write straight quotes, ' or "`},
}

var singleBar = regexp.MustCompile(`[^|]\|[^|]`)

// commonMistake returns what to write in place of a common mistake, "" if the
// compiler's message is about another one.
func commonMistake(text, problem string) string {
	if addressWord.MatchString(text) {
		return "write ip, which is the client's address; a header such as X-Forwarded-For counts if client-ip names it and the proxies that write it"
	}
	if m := dotted.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("write %s[%q]", m[1], m[2])
	}
	if bareWord.MatchString(text) {
		return fmt.Sprintf("to read a value that a request has under this name, write header[%q] or query[%q]; ", text, text) + oneCounter
	}
	for _, m := range mistakes {
		if m.message.MatchString(problem) {
			return m.hint
		}
	}
	if strings.Contains(problem, "unexpected token") && singleBar.MatchString(text) {
		return `write ||, or the word or`
	}
	return ""
}

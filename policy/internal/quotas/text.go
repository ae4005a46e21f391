package quotas

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxBytes is the size of the largest file, in bytes.
const MaxBytes = 64 << 20

const lineHint = "write a key, a colon and quotas on each line, as in ann: 1000/m"

// Parse reads the text of a file: on each line a key, a colon and the quotas of the
// key. Empty lines mean nothing, and neither do comments, which begin with # at the
// beginning of a line or behind a space. The last colon of a line ends the key, so that a key may have
// colons. A key with other odd characters stands in quotes.
func Parse(text []byte) (*Table, []Problem) { return Read(text).Table() }

// Read reads the text of a file as Parse does, and keeps the keys.
func Read(text []byte) *Builder {
	b, number := &Builder{}, 0
	if len(text) > MaxBytes {
		b.problems = []Problem{{Text: fmt.Sprintf("has more than %d bytes", MaxBytes), Hint: "a table in a file has at most so many: use a source, such as a database"}}
		return b
	}
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		b.bad(1, 1, "is text in UTF-16", "save the file as UTF-8")
		return b
	}
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) { // some editors write a byte order mark
		number++
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") {
			continue
		}
		key, quotas, column, problem, hint := split(line)
		if problem != "" {
			b.bad(number, column, problem, hint)
			if b.full() {
				break
			}
		} else if !b.Add(key, quotas, number, column) {
			break
		}
	}
	return b
}

// split takes a line apart. column is where the quotas begin, from 1, or where the
// problem is.
func split(line string) (key, quotas string, column int, problem, hint string) {
	if i := strings.IndexFunc(line, func(c rune) bool { return c == utf8.RuneError || c < ' ' && c != '\t' || c == 0x7f }); i >= 0 {
		return "", "", columnOf(line, i), "has a character that is not text in UTF-8", `write an odd key in double quotes, with escapes such as \x00 or \ufffd`
	}
	if line[0] == ' ' || line[0] == '\t' {
		return "", "", 1, "begins with a space", "a key begins at the beginning of its line, and its quotas are on the same line, as in ann: 1000/m"
	}
	if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "-\t") {
		return "", "", 1, "begins with a dash, as an item of a list", "a table is no list: write ann: 1000/m; a key that begins with a dash and a space stands in double quotes"
	}
	var at int // where rest begins
	var rest string
	if line[0] == '"' || line[0] == '\'' {
		var ok bool
		if key, rest, ok = unquote(line); !ok {
			return "", "", 1, "begins with a quote that does not end, or has an escape that is not known", `in a key in double quotes, a quote is \" and a backslash is \\; in single quotes, a quote is ''`
		}
		at = len(line) - len(rest)
		rest = uncomment(rest)
		colon := len(rest) - len(strings.TrimLeft(rest, " \t"))
		if colon == len(rest) || rest[colon] != ':' {
			return "", "", columnOf(line, at), "has no colon behind the key", lineHint
		}
		at, rest = at+colon+1, rest[colon+1:]
	} else {
		rest = uncomment(line)
		colon := strings.LastIndexByte(rest, ':')
		if colon < 0 {
			return "", "", 1, "has no colon", lineHint
		}
		if key = strings.TrimRight(rest[:colon], " \t"); key == "" {
			return "", "", 1, "has no key before the colon", `the key of requests without a key is written ""`
		}
		at, rest = colon+1, rest[colon+1:]
	}
	quotas = strings.TrimLeft(rest, " \t")
	column = columnOf(line, at+len(rest)-len(quotas))
	if quotas = strings.TrimRight(quotas, " \t"); quotas == "" {
		return "", "", column, "has no quotas behind the key", Want
	}
	if quotas[0] == '"' || quotas[0] == '\'' {
		text, behind, ok := unquote(quotas)
		if !ok || behind != "" {
			return "", "", column, "has quotas that are badly quoted", "quotas need no quotation marks: write ann: 1000/m"
		}
		quotas = text
	}
	return key, quotas, column, "", ""
}

// columnOf returns the column of a byte of a line, from 1.
func columnOf(line string, at int) int { return utf8.RuneCountInString(line[:at]) + 1 }

// uncomment cuts a comment off.
func uncomment(s string) string {
	for i := 1; i < len(s); i++ {
		if s[i] == '#' && (s[i-1] == ' ' || s[i-1] == '\t') {
			return strings.TrimRight(s[:i], " \t")
		}
	}
	return s
}

// unquote reads the text in quotes with which s begins, and returns what is behind
// it.
func unquote(s string) (text, rest string, ok bool) {
	if s[0] == '"' {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", false
		}
		text, err = strconv.Unquote(quoted)
		return text, s[len(quoted):], err == nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '\'' {
			b.WriteByte(s[i])
		} else if i+1 < len(s) && s[i+1] == '\'' {
			b.WriteByte('\'')
			i++
		} else {
			return b.String(), s[i+1:], true
		}
	}
	return "", "", false
}

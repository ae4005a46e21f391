package keyfuncs

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// mayBeNoForm reports whether a handler that does not look at the type could
// read a body of type application/x-www-form-urlencoded as XML, YAML, TOML or
// MessagePack. Browsers and libraries escape everything that counts here (URL
// standard, section 5.2); some programs, such as curl -d, escape nothing.
func mayBeNoForm(body []byte) bool {
	if body[0] >= utf8.RuneSelf { // a map or an array of MessagePack, or a byte order mark
		return true
	}
	key, value, _ := bytes.Cut(body, []byte("="))
	for i, c := range body {
		var next byte
		if i+1 < len(body) {
			next = body[i+1]
		}
		switch {
		case c < ' ' || c == 0x7f: // a line break among them: YAML, TOML
			return true
		case c == '<' && bytes.IndexByte(body[i:], '>') > 0: // XML; what is before the first element does not count
			return true
		case c == ':' && separates(next), separates(c) && next == '{': // a mapping of YAML, in one line
			return true
		}
	}
	// TOML in one line has one value, which may be followed by a comment.
	value = bytes.TrimLeft(value, " ")
	if len(value) > 0 && strings.IndexByte("\"'{[", value[0]) >= 0 {
		return true
	}
	value, _, commented := bytes.Cut(value, []byte("#"))
	return commented && !bytes.ContainsRune(value, '&') && !bytes.ContainsRune(key, '&')
}

// separates reports whether YAML may take c, or the character that c is a part
// of, for white space or a line break.
func separates(c byte) bool { return c == ' ' || c >= utf8.RuneSelf }

// mayBeNoMultipart reports whether a handler that does not look at the type
// could read a body of type multipart/form-data as XML, YAML or TOML: there is
// something before the first part, the boundary could be a key of YAML or TOML,
// or there is an end tag of the field.
func mayBeNoMultipart(body []byte, boundary string, name *spelling) bool {
	first, found := bytes.CutPrefix(bytes.TrimLeft(body, "\r\n"), []byte("--"))
	if !found || !bytes.HasPrefix(first, []byte(boundary)) || strings.ContainsAny(boundary, ":= ") {
		return true
	}
	for {
		_, after, found := bytes.Cut(body, []byte("</"))
		if !found {
			return false
		}
		body = after
		tag := string(after[:min(len(after), len(name.name)+100)])
		if end := strings.IndexAny(tag, "> \t\r\n"); end >= 0 {
			tag = tag[:end]
		}
		tag = tag[strings.LastIndexByte(tag, ':')+1:] // behind the namespace
		if name.endsWith(tag) {
			return true
		}
	}
}

// endsWith reports whether the last part of the name, or of its other spelling,
// is part.
func (s *spelling) endsWith(part string) bool {
	return sameName(part, s.parts[len(s.parts)-1]) || s.other != nil && s.other.endsWith(part)
}

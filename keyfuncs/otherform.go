package keyfuncs

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"unicode/utf8"
)

// mayBeOther reports whether a handler that decodes a body without a look at its
// type could read it as another one.
func (b bodyType) mayBeOther(body []byte) bool {
	switch b.kind {
	case formBody:
		return mayBeNoForm(body)
	case multipartBody:
		return mayBeNoMultipart(body, b.boundary) || holdsXML(body)
	default:
		return holdsXML(body)
	}
}

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
		case c == ':' && separates(next): // a mapping of YAML, in one line
			return true
		case c == '{' && bytes.IndexByte(body[i:], ':') > 0: // another one; some decoders begin it behind any character
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
// could read a body of type multipart/form-data as YAML or TOML: there is
// something before the first part, or the boundary has a meaning there. Programs
// make boundaries of letters, digits and a few other characters (RFC 2046, section
// 5.1.1); a colon, an equals sign and a space are allowed, too, but can make a key
// of the first line, and "---" begins a document of YAML.
func mayBeNoMultipart(body []byte, boundary string) bool {
	first, found := bytes.CutPrefix(bytes.TrimLeft(body, "\r\n"), []byte("--"))
	return !found || !bytes.HasPrefix(first, []byte(boundary)) || boundary == "-" || strings.ContainsFunc(boundary, func(r rune) bool {
		return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("'()+_,-./?", r)
	})
}

// holdsXML reports whether a handler that does not look at the type could find a
// value in the body with encoding/xml, in an element or an attribute of any name:
// a decoder skips the text before the first element, and what it has read stays
// if it fails later.
func holdsXML(body []byte) bool {
	if end := bytes.LastIndexByte(body, '>'); end < 0 || bytes.IndexByte(body[:end], '<') < 0 {
		return false
	}
	d := xml.NewDecoder(bytes.NewReader(body))
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	inside, text := false, false
	for {
		token, err := d.RawToken()
		if err != nil {
			return false
		}
		switch token := token.(type) {
		case xml.StartElement:
			if inside = true; len(token.Attr) > 0 {
				return true
			}
		case xml.CharData:
			text = text || inside && len(bytes.TrimSpace(token)) > 0
		case xml.Comment:
			text = text || inside
		case xml.EndElement:
			if text {
				return true
			}
		}
	}
}

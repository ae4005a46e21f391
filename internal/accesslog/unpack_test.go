package accesslog_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/floodgate-go/floodgate/internal/accesslog"
)

func TestCompressedLogs(t *testing.T) {
	var zst bytes.Buffer
	w, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("a\nb\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	bz2, err := base64.StdEncoding.DecodeString(bzipped)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"zstd": zst.Bytes(), "bzip2": bz2, "a byte order mark": []byte("\xef\xbb\xbfa\nb")} {
		if lines, _ := read(t, text); strings.Join(lines, ",") != "a,b" {
			t.Errorf("%s: %q", name, lines)
		}
	}
	for text, want := range map[string]string{
		"\xfd7zXZ\x00 and more": "is compressed by xz (unpack it first: xz -dc", "\x04\x22\x4d\x18abc": "is compressed by lz4", "\x1f\x9dabc": "is compressed by compress",
		"PK\x03\x04abc": "is a zip archive", "7z\xbc\xaf": "is a 7z archive", "\xff\xfea\x00": "is text in UTF-16", "a\x00b": "is not text",
		string(zst.Bytes()[:zst.Len()-3]): "unexpected EOF", string(bz2[:20]): "unexpected EOF", "BZhello": "bzip2",
	} {
		err := accesslog.Lines(strings.NewReader(text), func(int, []byte) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q: %v, want %s", text, err, want)
		}
	}
}

// bzipped is "a\nb\n" as bzip2 compresses it.
const bzipped = "QlpoOTFBWSZTWTyFQRIAAAFBAAAQMAAgADDMDHqCcXckU4UJA8hUESA="

package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A password file may end as editors of any system end a line. Nothing else of it is
// cut.
func TestAPasswordFile(t *testing.T) {
	for _, c := range [][2]string{
		{"s3cret", "s3cret"}, {"s3cret\n", "s3cret"}, {"s3cret\r\n", "s3cret"}, {"s3cret\r", "s3cret"}, {"s3cret\n\n", "s3cret"},
		{" s3 cret \r\n", " s3 cret "}, {"\ns3cret\n", "\ns3cret"}, {"s3\r\ncret\r\n", "s3\r\ncret"}, {"\t\n", "\t"}, {"", ""}, {"\r\n", ""},
		{strings.Repeat("x", 64<<10), strings.Repeat("x", 64<<10)},
	} {
		text, want := c[0], c[1]
		path := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := (Secret{file: path}).Text(); err != nil || got != want {
			t.Errorf("%.20q: %.20q, %v, want %.20q", text, got, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, make([]byte, 64<<10+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Secret{file: path}).Text(); err == nil || err.Error() != path+" is longer than 64 KiB: want a file with the text alone" {
		t.Errorf("a long file: %v", err)
	}
	link := path + "-link"
	if err := os.Symlink(os.DevNull, link); err != nil {
		t.Fatal(err)
	}
	if _, err := (Secret{file: link}).Text(); err == nil || err.Error() != link+" is a device: want a regular file" {
		t.Errorf("a device: %v", err)
	}
	if _, err := (Secret{file: path + "x"}).Text(); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestAPasswordInTheEnvironment(t *testing.T) {
	t.Setenv("A_PASSWORD", "s3cret\n")
	if got, err := (Secret{env: "A_PASSWORD"}).Text(); err != nil || got != "s3cret\n" {
		t.Errorf("%q, %v, want the value as it is", got, err)
	}
	t.Setenv("A_PASSWORD", "")
	if got, err := (Secret{env: "A_PASSWORD"}).Text(); err != nil || got != "" {
		t.Errorf("an empty variable: %q, %v", got, err)
	}
	if _, err := (Secret{env: "NO_SUCH_PASSWORD"}).Text(); err == nil || !strings.Contains(err.Error(), "NO_SUCH_PASSWORD is not in the environment") {
		t.Errorf("a variable that is not there: %v", err)
	}
	if got, err := (Secret{text: " x "}).Text(); err != nil || got != " x " {
		t.Errorf("%q, %v", got, err)
	}
}

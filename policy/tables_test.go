package policy_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// quotaOf is the quota of a key of the rule a.
func quotaOf(t testing.TB, set *policy.Set, key string) int64 {
	t.Helper()
	got, err := set.QuotasOf("a", key)
	if err != nil {
		t.Fatal(err)
	}
	if got == nil {
		return -1
	}
	return got[0]
}

const tabled = "policies: [{name: a, key: ip, limits: 2/m, quotas: {file: customers}}]"

func TestBrokenTablesAreRefusedAtTheStart(t *testing.T) {
	dir := folderWith(t, map[string]string{
		"fine": "ann: 5\n", "broken": "ann: 5\n\nbob: 5/x\nkim\n", "two": "ann: 5\nbob: 3/m, 4/d\n", "zero": "", "p.yaml": tabled,
	})
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o700), os.Symlink("/etc/passwd", filepath.Join(dir, "link")), os.Symlink("../fine", filepath.Join(dir, "sub", "inner"))); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct{ limits, quotas, want string }{
		{"2/m", "{file: broken}", in("broken") + `:3:6: policies[0].quotas: "5/x": window: "x": want a unit`},
		{"2/m", "{file: two}", in("two") + `:2:6: policies[0].quotas: "3/m, 4/d": the rule has no limit with a window of 24h (its limits are 2/1m)`},
		{"[2/m, 3/h]", "{file: fine}", in("fine") + `:1:6: policies[0].quotas: "5": the rule has 2 limits (write a window behind each quota, as in 2/1m, 3/1h)`},
		{"2/m", "{file: none}", "f.yaml:1:52: policies[0].quotas: " + "open " + in("none") + ": no such file or directory"},
		{"2/m", "{file: sub}", "f.yaml:1:52: policies[0].quotas: " + in("sub") + " is a folder: want a regular file"},
		{"2/m", "{file: link}", "f.yaml:1:52: policies[0].quotas: " + "open " + in("link") + ": path escapes from parent"},
		{"2/m", "{file: ../p.yaml}", `f.yaml:1:59: policies[0].quotas.file: "../p.yaml": is not below the folder of the policy file (write a path`},
		{"2/m", "{file: /etc/passwd}", `f.yaml:1:59: policies[0].quotas.file: "/etc/passwd": is not below`},
		{"2/m", "{source: customers}", "f.yaml:1:52: policies[0].quotas: the program has no source customers (have it give policy.WithQuotas, or write file)"},
		{"2/m", "{source: broken}", "f.yaml:1:52: policies[0].quotas: source broken: the database is gone"},
		{"2/m", "{source: rows}", `source rows:2: policies[0].quotas: "5/x": window: "x"`},
		{"2/m", "{source: half}", "f.yaml:1:52: policies[0].quotas: source half: the database is gone"},
		{"2/m", "{source: many}", `source many:1: policies[0].quotas: "5/x": window: "x"`},
		{"2/m", "{source: missing}", "f.yaml:1:52: policies[0].quotas: " + "stat " + in("missing") + ": no such file"},
		{"2/m", "{source: file}", in("broken") + ":3:6: policies[0].quotas: "},
		{"[2/m, 3/m token_bucket]", "{file: fine}", "f.yaml:1:72: policies[0].quotas: two limits have a window of 1m (the window says which limit"},
	} {
		text := "policies: [{name: a, key: ip, limits: " + c.limits + ", quotas: " + c.quotas + "}]"
		set, err := policy.Parse("f.yaml", []byte(text), policy.Folder(dir),
			policy.WithQuotas("broken", source(func(func(string, string) error) error { return errors.New("the database is gone") })),
			policy.WithQuotas("rows", source(func(row func(string, string) error) error {
				return errors.Join(row("ann", "5"), row("bob", "5/x"))
			})),
			policy.WithQuotas("half", source(func(row func(string, string) error) error {
				return errors.Join(row("bob", "5/x"), errors.New("the database is gone"))
			})),
			policy.WithQuotas("many", source(func(row func(string, string) error) (err error) {
				for i := 0; err == nil; i++ { // until row says that it is enough
					err = row(strconv.Itoa(i), "5/x")
				}
				return err
			})),
			policy.WithQuotas("missing", policy.QuotaFile(in("missing"))), policy.WithQuotas("file", policy.QuotaFile(in("broken"))))
		if err == nil {
			t.Errorf("%s: it is taken: %v", text, set.Close())
		} else if !strings.HasPrefix(err.Error(), c.want) || policy.Errors(err) == nil {
			t.Errorf("%s says:\n%v\nwant:\n%s", text, err, c.want)
		}
	}
	_, err := policy.Parse("f.yaml", []byte("policies: [{name: a, key: ip, limits: 2/m, quotas: {file: broken}}]"), policy.Folder(dir))
	if all := policy.Errors(err); len(all) != 2 || all[1].Error() != in("broken")+":4:1: policies[0].quotas: has no colon (write a key, a colon and quotas on each line, as in ann: 1000/m)" {
		t.Errorf("of two mistakes it says %v", err)
	}
	for _, fine := range []string{"zero", "fine", "sub/inner"} {
		set, err := policy.Parse("f.yaml", []byte("policies: [{name: a, key: ip, limits: 2/m, quotas: {file: "+fine+"}}]"), policy.Folder(dir))
		if err != nil {
			t.Errorf("%s: %v", fine, err)
		} else if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := policy.Parse("f.yaml", []byte(tabled)); err == nil || !strings.Contains(err.Error(), "the folder of the policy file is not known") {
		t.Errorf("without a folder: %v", err)
	}
	if _, err := policy.Parse("f.yaml", []byte(tabled), policy.WithQuotas("x", nil)); !errors.Is(err, core.ErrConfig) {
		t.Errorf("a nil source: %v", err)
	}
}

// source is a source that does not look at its context.
type source func(row func(key, quotas string) error) error

func (s source) Quotas(_ context.Context, row func(key, quotas string) error) error { return s(row) }

// A table that changes is in force within two seconds, and what has been counted stays. A
// broken table is refused, and said once.
func TestAWatchedTable(t *testing.T) {
	dir := folderWith(t, map[string]string{"customers": "10.0.0.1: 5\n"})
	customers := filepath.Join(dir, "customers")
	w := watch(t, filepath.Join(dir, "p.yaml"), tabled)
	for range 2 {
		if d := w.set.Check(&explained{address: "10.0.0.1:5"}); !d.Allowed || d.Limit().Quota != 5 {
			t.Fatalf("%+v", d)
		}
	}
	change := func(text string) error {
		t.Helper()
		if err := replaceFile(customers, text); err != nil {
			t.Fatal(err)
		}
		return w.reloaded()
	}
	if err := change("10.0.0.1: 9\n10.0.0.2: 1\n"); err != nil {
		t.Fatal(err)
	}
	if d := w.set.Check(&explained{address: "10.0.0.1:5"}); d.Limit().Quota != 9 || d.Remaining != 6 {
		t.Errorf("%d left of %d, want 6 of 9: what has been counted stays", d.Remaining, d.Limit().Quota)
	}
	for i, broken := range []string{"10.0.0.1: many\n", "10.0.0.1: 9/h\n"} {
		if err := change(broken); len(policy.Errors(err)) != 1 || policy.Errors(err)[0].Line != 1 || policy.Errors(err)[0].File != customers {
			t.Errorf("a broken table: %v", err)
		}
		if got := quotaOf(t, w.set, "10.0.0.1"); got != 9 {
			t.Errorf("after a broken table the quota is %d, want 9", got)
		}
		if log := w.log.String(); strings.Count(log, "level=ERROR") != i+1 || !strings.Contains(log, "the last good one stays") {
			t.Errorf("the log:\n%s", log)
		}
	}
	// The policies change so that the refused table is fine for them.
	w.write("policies: [{name: a, key: ip, limits: 2/m fixed_window, quotas: {file: other}}]")
	if err := w.reloaded(); err == nil {
		t.Error("a table that is not there is taken")
	}
	w.write("policies: [{name: a, key: ip, limits: [2/m, 3/h], quotas: {file: customers}}]")
	if err := w.reloaded(); err == nil || !strings.Contains(err.Error(), "the rule has 2 limits") { // the table in force is checked
		t.Errorf("%v", err)
	}
	if err := change("10.0.0.1: 7/m\n"); err != nil {
		t.Fatal(err)
	}
	w.write("policies: [{name: a, key: ip, limits: [2/m, 3/h], quotas: {file: customers}}]\n")
	if err := w.reloaded(); err != nil {
		t.Fatal(err)
	}
	if err := change("10.0.0.1: 7/m, 8/h\n"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(customers); err != nil {
		t.Fatal(err)
	}
	if err := w.reloaded(); !errors.Is(err, os.ErrNotExist) || quotaOf(t, w.set, "10.0.0.1") != 7 {
		t.Errorf("a table that is gone: %v", err)
	}
	if err := change("10.0.0.1: 6/m, 8/h\n"); err != nil || quotaOf(t, w.set, "10.0.0.1") != 6 {
		t.Errorf("it is back: %v", err)
	}
	if err := change("# cut off\n"); err != nil || quotaOf(t, w.set, "10.0.0.1") != -1 {
		t.Errorf("an empty table: %v", err)
	}
	if log := w.log.String(); !strings.Contains(log, "level=WARN msg=\"table of quotas in force, without a key") {
		t.Errorf("the log says nothing of an empty table:\n%s", log)
	}
	w.write("policies: [{name: a, key: ip, limits: 2/m}]")
	if err := w.reloaded(); err != nil || quotaOf(t, w.set, "10.0.0.1") != -1 {
		t.Errorf("without the table: %v", err)
	}
}

// What a table was refused for may be what the next policies have.
func TestATableThatWasRefusedIsTriedAgainWithNewPolicies(t *testing.T) {
	dir := folderWith(t, map[string]string{"customers": "ann: 5/m\n"})
	w := watch(t, filepath.Join(dir, "p.yaml"), tabled)
	if err := replaceFile(filepath.Join(dir, "customers"), "ann: 6/m, 7/h\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.reloaded(); err == nil || quotaOf(t, w.set, "ann") != 5 {
		t.Errorf("a window that is none: %v", err)
	}
	w.write("policies: [{name: a, key: ip, limits: [2/m, 3/h], quotas: {file: customers}}]")
	for quotaOf(t, w.set, "ann") != 6 {
		if err := w.reloaded(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReloadReadsTables(t *testing.T) {
	dir := folderWith(t, map[string]string{"customers": "ann: 5\n", "p.yaml": tabled})
	set, err := policy.Load(filepath.Join(dir, "p.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close() //nolint:errcheck // nothing depends on it
	for _, table := range []struct {
		text string
		ann  int64
	}{{"ann: 6\n", 6}, {"eve: 7", -1}} { // the last one has eve
		if err := os.WriteFile(filepath.Join(dir, "customers"), []byte(table.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := set.Reload(); err != nil || quotaOf(t, set, "ann") != table.ann {
			t.Errorf("%q: %d, %v", table.text, quotaOf(t, set, "ann"), err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "customers"), []byte("eve: x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := set.Reload(); err == nil || quotaOf(t, set, "eve") != 7 {
		t.Errorf("a broken table: %v", err)
	}
	if err := set.Replace([]byte(tabled + "\n# the table is not read")); err != nil {
		t.Error(err)
	}
}

func TestWarningsOfTables(t *testing.T) {
	dir := folderWith(t, map[string]string{"customers": "ann: 5\nbob: 0\ndefault: 7\n"})
	var log lines
	set, err := policy.Parse("f.yaml", []byte(`
policies:
  - {name: a, key: ip, limits: 2/m, quotas: {file: customers}}
  - {name: b, key: ip, tier: user, tiers: {default: unlimited, small: 1/m}, quotas: {file: customers}}
  - {name: c, limits: 2/m, quota: '7'}
  - {name: d, limits: 2/m, quota: 'int(header["x-quota"])'}
`), policy.Folder(dir), policy.WithUser(func(core.Request) string { return "" }), policy.Log(slog.New(slog.NewTextHandler(&log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close() //nolint:errcheck // nothing depends on it
	var got []string
	for _, e := range set.Warnings() {
		got = append(got, strings.TrimPrefix(e.Error(), dir+"/"))
	}
	want := []string{
		"f.yaml:4:85: policies[1].quotas: the tier default is unlimited: so is a key that is not known",
		`f.yaml:5:35: policies[2].quota: "7": is the same for all requests`,
		`f.yaml:6:35: policies[3].quota: "int(header[\"x-quota\"])": a client writes the header itself, and so chooses its quota`,
		`customers:2:6: policies[0].quotas: "0": denies all requests of the key`,
		"customers:3:1: policies[0].quotas: default: is a key as any other",
	}
	if len(got) != len(want) {
		t.Errorf("%d warnings: %q", len(got), got)
	}
	for i := range min(len(got), len(want)) {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("warning %d: %s, want %s", i, got[i], want[i])
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != len(want) {
		t.Errorf("%d are logged:\n%s", n, log.String())
	}
}

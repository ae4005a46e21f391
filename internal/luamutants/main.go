//go:build unix

// Command luamutants breaks the script of stores/redis on purpose, one operator or
// constant at a time, runs the tests of stores/redis against each break, and
// reports the breaks that no test notices. make mutants-lua runs it.
//
// The test binary is compiled once: FLOODGATE_REDIS_SCRIPT names the file with the
// script that it is to use. Survivors that nothing can observe are listed in
// survivors.txt, with a reason.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
)

// floor is the least share of breaks that the tests must notice, in percent.
const floor = 90

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := mainError(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "luamutants:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

func mainError(ctx context.Context, out io.Writer) error {
	files := flag.String("files", "", "break only the files whose names match this regular expression")
	again := flag.String("again", "", "make only the breaks in this file, such as the output of an earlier run, that survivors.txt does not list")
	fast := flag.Bool("fast", false, "run the fast tests only")
	parallel := flag.Int("parallel", runtime.NumCPU(), "breaks that are tested at the same time")
	flag.Parse()
	only, err := regexp.Compile(*files)
	if err != nil {
		return fmt.Errorf("-files: %w", err)
	}
	temp, err := os.MkdirTemp("", "luamutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp) //nolint:errcheck // it is a temporary folder
	r, all, err := prepare(ctx, temp, only)
	if err != nil {
		return err
	}
	if r.stages = len(stages); *fast {
		r.stages--
	}
	listed, err := readSurvivors("internal/luamutants/survivors.txt")
	if err != nil {
		return err
	}
	if *again != "" {
		some, err := readSurvivors(*again)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(m mutant) bool { return some[m.key()] == "" || listed[m.key()] != "" })
	}
	if v, err := r.run(ctx, 0, mutant{}); err != nil || v != lived {
		return errors.Join(errors.New("the tests fail with the script as it is"), err)
	}
	say(out, "%d breaks\n", len(all))
	verdicts, err := test(ctx, out, r, all, *parallel)
	if err != nil {
		return err
	}
	return report(out, all, verdicts, listed, *files == "" && *again == "")
}

// prepare compiles the tests and returns the breaks of the files.
func prepare(ctx context.Context, temp string, only *regexp.Regexp) (*runner, []mutant, error) {
	r := &runner{binary: filepath.Join(temp, "redis.test"), dir: filepath.FromSlash("stores/redis"), files: map[string]string{}, temp: temp}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", r.binary, "./stores/redis")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("go test -c: %w\n%s", err, text)
	}
	var err error
	if r.names, err = scriptFiles(filepath.Join(r.dir, "script.go")); err != nil {
		return nil, nil, err
	}
	var all []mutant
	for _, name := range r.names {
		text, err := os.ReadFile(filepath.Join(r.dir, "script", name))
		if err != nil {
			return nil, nil, err
		}
		r.files[name] = string(text)
		if !only.MatchString(name) {
			continue
		}
		some, err := mutants(name, string(text))
		if err != nil {
			return nil, nil, err
		}
		all = append(all, some...)
	}
	if len(all) == 0 {
		return nil, nil, errors.New("there is nothing to break: run it in the root of the module")
	}
	return r, all, nil
}

func readSurvivors(name string) (map[key]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	listed, err := parseSurvivors(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return listed, nil
}

// test runs the tests against all breaks.
func test(ctx context.Context, out io.Writer, r *runner, all []mutant, parallel int) ([]verdict, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	verdicts := make([]verdict, len(all))
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range max(1, parallel) {
		wg.Go(func() {
			for i := range next {
				v, err := r.run(ctx, i, all[i])
				if err != nil {
					cancel(err)
				}
				verdicts[i] = v
				if v != killed && err == nil {
					mu.Lock()
					say(out, "%s\n", describe(all[i], v))
					mu.Unlock()
				}
			}
		})
	}
	for i := range all {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	return verdicts, context.Cause(ctx)
}

// say writes to the output, of which nobody reads the errors.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

func describe(m mutant, v verdict) string {
	what := ""
	if v == timedOut {
		what = "\t\t(timed out)\n"
	}
	return fmt.Sprintf("%s %s→%s\n\t%s\n\t\t(line %d)\n%s", m.file, m.old, m.new, m.source, m.line, what)
}

// report prints the figures. It returns an error if the tests notice too little,
// or if survivors.txt lists what is not there, or was noticed. whole says that all breaks were made.
func report(out io.Writer, all []mutant, verdicts []verdict, listed map[key]string, whole bool) error {
	counts := map[verdict]int{}
	silent := 0
	seen := map[key]bool{}
	var wrong []string
	for i, m := range all {
		reason := listed[m.key()]
		seen[m.key()] = true
		switch {
		case verdicts[i] == killed && reason != "":
			wrong = append(wrong, fmt.Sprintf("%s line %d: is listed, and a test notices it: %s", m.file, m.line, m.source))
			counts[killed]++
		case reason != "":
			silent++
		default:
			counts[verdicts[i]]++
		}
	}
	for k := range listed {
		if !seen[k] && whole {
			wrong = append(wrong, fmt.Sprintf("%s: is listed, and is not in the file: %s %s", k.file, k.change, k.source))
		}
	}
	slices.Sort(wrong)
	for _, w := range wrong {
		say(out, "%s\n", w)
	}
	total := len(all) - silent
	share := 100 * float64(counts[killed]) / float64(max(1, total))
	say(out, "%d breaks: %d noticed, %d not, %d timed out, %d that nothing can observe: %.1f %%\n",
		len(all), counts[killed], counts[lived], counts[timedOut], silent, share)
	if share < floor {
		return fmt.Errorf("the tests notice %.1f %%, and have to notice %d %%", share, floor)
	}
	if len(wrong) > 0 {
		return errors.New("survivors.txt is not right")
	}
	return nil
}

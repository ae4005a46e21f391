//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stages are the tests of stores/redis that run against each break, until one
// fails: fast ones that notice most, and then all that is about the script.
var stages = [][]string{
	{"-test.run=^(TestTheScriptDoesAsTheStoreInGo)$"},
	{"-test.run=^(" + strings.Join(storedValues, "|") + ")$"},
	{"-test.run=^TestOperations$|^(TestRedisAgreesWithMemory|TestShared)$/^(Programs|TwoVersions)?$"},
	{"-test.skip=^(TestGuarantees|TestURL.*|TestMovingSlots.*|TestAFailover.*|TestAFull.*|TestALost.*|TestASwallowed.*|TestOnACluster.*|TestATake.*|TestKeysOf.*|TestARing|Example.*)$"},
}

// storedValues are the tests of what is stored, and for how long, that take less
// than a second.
var storedValues = []string{
	"TestANewKeyIsReadable", "TestForeignValues.*", "TestWhichVersionsAreNewer", "TestTheMarkOf.*",
	"TestTheShortestRecords", "TestHowMuchOfOthers.*", "TestStatesThat.*", "TestHowLongAValueMayBe", "TestRecordsOf.*",
	"TestALogThat.*", "TestABucketedWindowWith.*", "TestLeasesThatNo.*", "TestAValue.*", "TestALeaseIsFound.*",
	"TestTheValueOf.*", "TestStored.*", "TestAQuotaOfZero.*", "TestATimeOutside.*", "TestTheOldest.*",
	"TestARefundOf.*", "TestAStateOf.*", "TestAForgottenLockout.*", "TestAWaitAhead.*", "TestAShortTake.*",
	"TestAGrantAtThe.*", "TestAWriteThat.*", "TestALifetimeThat.*", "TestAMonth.*",
	"TestATakeSets.*", "TestALostLifetimeHeals", "TestLifetimes", "TestAStateLives.*", "TestARefusedTake.*",
	"TestARefundLeaves.*", "TestADenialOf.*", "TestTimesLess.*", "TestTheShortWayAgreesWithMemory",
	"TestABlockKeeps.*", "TestABlockLeaves.*", "TestABlockReplaces.*", "TestABlockLasts.*", "TestABlockAnd.*", "TestATakeOfNothing.*", "TestAChargeKeeps.*", "TestTheServersTimeDecides", "TestResetOfVeryManyKeys",
}

// longest is how long a stage may take. A break that makes the script run without
// end fails before that, by the deadline of the tests' stores.
const longest = 3 * time.Minute

// verdict is what has become of a break.
type verdict int

const (
	killed verdict = iota // a test has failed
	lived
	timedOut
)

// runner runs the tests against broken scripts.
type runner struct {
	binary, dir string // of the tests
	files       map[string]string
	names       []string // of the files, in the order of the script
	temp        string
	stages      int // how many of stages run
}

// script returns the whole script, with one file in place of its own.
func (r *runner) script(file, text string) string {
	var b strings.Builder
	for _, name := range r.names {
		if name == file {
			b.WriteString(text)
		} else {
			b.WriteString(r.files[name])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// run runs the tests against a break; the unbroken script is the zero mutant.
func (r *runner) run(ctx context.Context, number int, m mutant) (verdict, error) {
	file := filepath.Join(r.temp, fmt.Sprint(number, ".lua"))
	text := r.script("", "")
	if m.file != "" {
		text = r.script(m.file, m.apply(r.files[m.file]))
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return 0, err
	}
	defer os.Remove(file) //nolint:errcheck // the folder goes too
	for _, stage := range stages[:r.stages] {
		if v, err := r.stage(ctx, file, stage); err != nil || v != lived {
			return v, err
		}
	}
	return lived, nil
}

func (r *runner) stage(ctx context.Context, script string, flags []string) (verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	args := append([]string{"-test.failfast", "-test.short", "-rapid.nofailfile", "-rapid.checks=50"}, flags...)
	// A break can make the script fill the memory without end: the limit, in KiB,
	// holds for the servers too.
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -v 4194304; exec "$0" "$@"`, r.binary}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "FLOODGATE_REDIS_SCRIPT="+script, "FLOODGATE_REQUIRE_SERVERS=1")
	// The servers that the tests start are in the group, and end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return lived, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return timedOut, nil
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.As(err, &exit):
		return killed, nil
	}
	return 0, err
}

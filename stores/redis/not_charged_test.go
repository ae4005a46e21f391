package redisstore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// An error reply proves that nothing was charged if a server says it that refuses
// before it writes. A proxy says others when it has passed the command on.
func TestWhichRepliesProveThatNothingWasCharged(t *testing.T) {
	for reply, want := range map[string]bool{
		"OOM command not allowed": true, "READONLY You can't": true, "NOPERM this user": true, "NOAUTH Authentication": true,
		"ERR The user executing the script can't run": true, "ERR ACL failure in script": true, "MISCONF Redis is": true, "NOREPLICAS Not": true,
		"LOADING Redis is": true, "CROSSSLOT Keys": true, "BUSY Redis is busy": true, "ERR unknown command 'evalsha'": true, "NOSCRIPT No": true,
		"FLOODGATE newer: fg1:x: the stored value": true, "FLOODGATE some of several keys have been written: FLOODGATE newer: ": false,
		// Before Redis 7, of a command in the script.
		"@user_script: 1359: -READONLY You can't write against a read only replica.\r\n": true, "@user_script: 7: -OOM command not allowed": true,
		"@user_script: 7: The user executing the script can't run this command or subcommand":                                                true,
		"ERR Error running script (call to f_0a9f): @user_script:7: @user_script: 7: -READONLY You can't write against a read only replica.": true,
		"ERR Error running script (call to f_0a9f): @user_script:7: Script killed by user with SCRIPT KILL...":                               false,
		"FLOODGATE some of several keys have been written: @user_script: 7: -OOM command":                                                    false, "@user_script: 7: -upstream": false,
		"FLOODGATE some of several keys have been written: OOM": false, "upstream failure": false, "ERR Connection timed out": false, "": false,
	} {
		err := classify(ownError(scriptError(reply)), true)
		if got := errors.Is(err, core.ErrNotCharged); got != want {
			t.Errorf("%q proves that nothing was charged: %v, want %v", reply, got, want)
		}
		if err := afterOthers(fmt.Errorf("wrapped: %w", err)); errors.Is(err, core.ErrNotCharged) {
			t.Errorf("%v: says that nothing was charged, and other keys were", err)
		}
	}
}

package main

import "github.com/spf13/cobra"

// platform are the commands that need Linux. A command here that users call needs a line in commands_other.go, too.
var platform = []func() *cobra.Command{
	newList,
	newRecord,
	newDump,
	newEvents,
	newTriage,
	newSnap,
	newLocks,
	newHeap,
	newMemory,
	newTop,
	newSlow,
	newAgent,
	newDoctor,
	newWatchdog,
	newSnapper,
}

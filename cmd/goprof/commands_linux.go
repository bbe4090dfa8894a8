package main

import "github.com/spf13/cobra"

// platform lists the commands that need Linux. A user's command also needs a line in commands_other.go.
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

// Package pools finds out what the threads of a pool do: they wait for work, they work, or they wait inside a task.
//
// A look (Look) shows by its stack what one thread does. A pool (Of) consists of the threads whose names only differ by
// a number. If the JVM's objects show which executor a thread runs for, the threads of one executor are a pool (Known),
// and its queue is known.
//
// A thread that waits for work is idle, which is normal. A worker of an executor is idle if its own loop waits
// (ThreadPoolExecutor.getTask). A loop of the program is idle if it waits for the next item of a queue. All other waits
// that the class library names are waits inside a task: for a connection of a pool, for room in a queue, for another
// task's result. If a stack does not distinguish the two (Object.wait, a Condition, a sleep), the thread is Paused,
// which proves nothing.
package pools

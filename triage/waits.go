package triage

import (
	"slices"
	"strings"

	"goprof/profile"
	"goprof/profile/naming"
	"goprof/profile/pools"
)

// waits holds the looks of the wall-clock profile at one thread.
type waits struct {
	name  string
	total int64
	state [profile.Stopped + 1]int64
	// locked counts looks in which the thread waited to enter a monitor or to take a lock of java.util.concurrent.
	// sites counts them by the method that wanted the lock.
	locked int64
	sites  map[string]int64
	// spots counts the looks by activity and place.
	spots map[pools.Spot]int64
}

// lockedShare returns the part of its time in which the thread waited for locks.
func (w *waits) lockedShare() float64 { return float64(w.locked) / float64(max(w.total, 1)) }

// share returns the part of its time in a state.
func (w *waits) share(s profile.State) float64 { return float64(w.state[s]) / float64(max(w.total, 1)) }

// doing returns the part of its time at a spot.
func (w *waits) doing(at pools.Spot) float64 { return float64(w.spots[at]) / float64(max(w.total, 1)) }

// waitsOf splits a wall-clock profile by threads.
func (x *exam) waitsOf(p *profile.Profile) map[int]*waits {
	all := map[int]*waits{}
	if p == nil {
		return all
	}
	p.Each(func(frames []profile.Frame, n int64) {
		t, ok := naming.ThreadOf(frames[0].Func.Name)
		if !ok || t.TID == 0 || n <= 0 {
			return
		}
		w := all[t.TID]
		if w == nil {
			w = &waits{name: t.JavaName, sites: map[string]int64{}, spots: map[pools.Spot]int64{}}
			all[t.TID] = w
		}
		w.total += n
		leaf := &frames[len(frames)-1]
		if leaf.Kind != profile.StateFrame {
			w.spots[spotOf(frames[1:], false)] += n
			return
		}
		state := stateOf(leaf.Func.Name)
		w.state[state] += n
		w.spots[spotOf(frames[1:len(frames)-1], state == profile.Blocked)] += n
		if site, wants := wantsLock(state, frames[:len(frames)-1]); wants {
			w.locked += n
			w.sites[site] += n
		}
	})
	return all
}

// spotOf returns the activity and place of a thread with this stack, root first.
func spotOf(frames []profile.Frame, blocked bool) pools.Spot {
	leafFirst := slices.Clone(frames)
	slices.Reverse(leafFirst)
	return pools.Look(leafFirst, blocked)
}

func stateOf(label string) profile.State {
	name, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(label, "["), "]"), ": ")
	s, err := profile.ParseState(name)
	if err != nil {
		return profile.InNative
	}
	return s
}

// wantsLock reports whether a thread waits for a lock that another thread holds, and which method of the program wants
// it. Frames are root first. A thread in a Condition waits for an event, not for a lock.
func wantsLock(s profile.State, frames []profile.Frame) (site string, wants bool) {
	if s != profile.Blocked && s != profile.Parked {
		return "", false
	}
	wants = s == profile.Blocked
	for i := len(frames) - 1; i > 0; i-- {
		f := &frames[i]
		if !f.Kind.Java() {
			continue
		}
		name := f.Func.Name
		if strings.HasSuffix(name, "ConditionObject.await") || strings.HasSuffix(name, "ConditionObject.awaitNanos") {
			return "", false
		}
		if takesTurns(name) {
			return "", false
		}
		if takesLock(name) {
			wants = true
			continue
		}
		if !strings.HasPrefix(name, "java.util.concurrent.locks.") && !strings.HasPrefix(name, "jdk.internal.") &&
			!strings.HasPrefix(name, "sun.misc.") {
			return name, wants
		}
	}
	return "", wants
}

// takesTurns reports whether threads in that method of the class library take turns by a lock, while the first of them
// waits for something else: a client, or a host's address.
func takesTurns(method string) bool {
	return method == "sun.nio.ch.NioSocketImpl.accept" || method == "sun.nio.ch.ServerSocketChannelImpl.accept" ||
		strings.HasPrefix(method, "java.net.InetAddress")
}

// takesLock reports whether threads in that method wait for a lock of java.util.concurrent that has an owner.
// Semaphores, latches and futures use the same queue, and have no owner.
func takesLock(method string) bool {
	class, ok := strings.CutPrefix(method, "java.util.concurrent.locks.")
	return ok && (strings.HasPrefix(class, "ReentrantLock") || strings.HasPrefix(class, "ReentrantReadWriteLock") ||
		strings.HasPrefix(class, "StampedLock"))
}

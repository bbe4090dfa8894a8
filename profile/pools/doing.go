package pools

import (
	"slices"
	"strings"

	"goprof/profile"
	"goprof/profile/naming"
)

// Doing is the activity of a thread in a pool.
type Doing uint8

const (
	Working     Doing = iota // it runs, or waits in a way that this package does not know
	Idle                     // it waits for work
	Paused                   // it sleeps, or waits for a notification: for work or inside a task
	ForResource              // for something of a pool that others must give back: a connection
	ForRoom                  // for room in a full queue
	ForPermit                // for a permit of a Semaphore
	ForResult                // for what other threads must do first: a Future, a latch, a barrier, the end of a thread
	ForLock                  // for a lock that another thread holds
	ForProcess               // for the end of a child process
	ForName                  // for the look-up of a host's name
	ForPeer                  // for the other end of a connection
)

var doings = [...]string{Working: "works", Idle: "waits for work", Paused: "sleeps or waits for a notification",
	ForResource: "waits for a resource of a pool", ForRoom: "waits for room in a full queue",
	ForPermit: "waits for a permit of a Semaphore", ForResult: "waits for the result of another task",
	ForLock: "waits for a lock", ForProcess: "waits for a child process", ForName: "waits for a host's address",
	ForPeer: "waits for the other end of a connection"}

func (d Doing) String() string {
	if int(d) < len(doings) {
		return doings[d]
	}
	return "unknown"
}

// Spot is a thread's activity and the method. If a thread does not move, two looks at it give equal Spots.
type Spot struct {
	Doing Doing
	// Site is the method of the program that waits. It is empty if there is none on the stack.
	Site string
	// From, with Doing ForResource, is the method that should hand out a resource. With ForPeer, it is the client
	// library's method that the program calls, in which the thread waits for another thread of that library.
	From string
}

// Look returns the activity of a thread with this stack, leaf first. blocked: the thread waits to enter a monitor. The
// stack of a blocked thread has no method for this wait.
func Look(frames []profile.Frame, blocked bool) Spot {
	names := javaOnly(frames)
	own := slices.IndexFunc(names, func(name string) bool { return !ofLibrary(name) })
	if own < 0 {
		own = len(names)
	}
	s := Spot{Doing: Working}
	switch {
	case blocked:
		s.Doing = waitOf(names[:own], ForLock)
	case own > 0 && isPrimitive(names[0]):
		s.Doing = waitOf(names[:own], Paused)
	}
	return s.of(names[own:])
}

// of completes a spot from the methods that begin with the program's first one, leaf first.
func (s Spot) of(names []string) Spot {
	methods := program(names)
	if len(methods) == 0 {
		if s.Doing != Working {
			s.Doing = Idle // the thread is the class library's own
		}
		return s
	}
	s.Site = methods[0]
	near := methods[:min(len(methods), nearby)]
	switch s.Doing {
	case Idle, Paused, ForPermit, ForResult:
		if from, at := handsOut(near); from != "" {
			s.Doing, s.From = ForResource, from
			s.Site = caller(methods, at)
			return s
		}
		if s.Doing == Idle || s.Doing == ForPermit {
			return s
		}
		if consumes(near) || consumes(proxies(names)) {
			if s.Doing == ForResult {
				s.Doing = Idle
			}
		} else if from, site := asked(methods); from != "" {
			s.Doing, s.From, s.Site = ForPeer, from, site
		}
	}
	return s
}

// javaOnly returns the names of the Java methods of a stack, leaf first.
func javaOnly(frames []profile.Frame) []string {
	names := make([]string, 0, len(frames))
	for i := range frames {
		if f := &frames[i]; f.Func != nil && f.Kind.Java() {
			names = append(names, f.Func.Name)
		}
	}
	return names
}

// program removes methods of the class library.
func program(names []string) (of []string) {
	for _, name := range names {
		if !ofLibrary(name) {
			of = append(of, name)
		}
	}
	return of
}

// proxies returns the nearby methods of generated classes (java.lang.reflect.Proxy). Some clients' interfaces are only
// implemented by these.
func proxies(names []string) (of []string) {
	for _, name := range names[:min(len(names), 2*nearby)] {
		if strings.Contains(name, ".$Proxy") {
			of = append(of, name)
		}
	}
	return of
}

// libraries are packages whose methods are never the program's.
var libraries = []string{"java.", "jdk.", "sun.", "javax.", "com.sun.", "scala.", "kotlin.", "kotlinx.", "clojure.",
	"io.netty.channel.epoll.Native.", "io.netty.channel.uring.Native."} // which wait for events

func ofLibrary(method string) bool { return naming.BeginsWith(method, libraries...) }

// split splits a method's name into its outermost class and its own name.
func split(name string) (class, method string) {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return "", name
	}
	class, method = name[:dot], name[dot+1:]
	if dollar := strings.IndexByte(class, '$'); dollar > 0 {
		class = class[:dollar]
	}
	return class, method
}

package main

import (
	"fmt"
	"strconv"
	"time"
)

// durationFlag is a time.Duration that may also be given as plain seconds.
type durationFlag time.Duration

func asTime(d *time.Duration) *durationFlag { return (*durationFlag)(d) }

func (d *durationFlag) Type() string { return "duration" }

func (d *durationFlag) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Set reads 30s, 2.5s, 5m, 1h30m, 30 or 2.5.
func (d *durationFlag) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil {
		if _, numErr := strconv.ParseFloat(s, 64); numErr != nil {
			return fmt.Errorf("%q is neither a duration like 30s or 5m nor a number of seconds", s)
		}
		if v, err = time.ParseDuration(s + "s"); err != nil {
			return fmt.Errorf("%q seconds is no duration", s)
		}
	}
	if v <= 0 {
		return fmt.Errorf("%q is not above 0", s)
	}
	*d = durationFlag(v)
	return nil
}

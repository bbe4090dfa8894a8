// What TestLanguages samples: closures, and calls that Groovy makes through its runtime.
package shop

class Box {
    def slow() { [1, 2].each { x -> [3].each { spin() } } }
    static void spin() { long end = System.nanoTime() + 5000000L; while (System.nanoTime() < end) {} }
}

while (true) {
    new Box().slow()
    [1].each { Box.spin() }
}

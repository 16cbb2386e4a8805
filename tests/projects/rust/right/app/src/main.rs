fn main() {
    println!("{}", extra::more(native::run(kern::step(1000))));
}

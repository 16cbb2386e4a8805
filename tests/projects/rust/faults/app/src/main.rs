use native as _;

fn main() {
    println!("{}", kern::step(1000));
}
